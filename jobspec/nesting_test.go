package jobspec

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostileTextIsRefusedCheaply: each of these once cost seconds or gigabytes.
func TestHostileTextIsRefusedCheaply(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 50000) }
	for name, body := range map[string]string{
		"templates":    `x = "` + many("${"),
		"quoted":       `x = ` + many(`"${`),
		"parentheses":  `job "a" { x = ` + many("("),
		"lists":        `job "a" { x = ` + many("["),
		"blocks":       many("a {"),
		"many faults":  "job \"a\" {\n" + many("a = [ ;\n") + "}",
		"one long one": `job "a" { ` + many("a ; ") + "}",
	} {
		_, err := Parse(Config{Body: []byte(body)})
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if n := len(err.Error()); n > 200000 {
			t.Errorf("%s: the message has %d bytes", name, n)
		}
		if !strings.Contains(err.Error(), "input.hcl:") {
			t.Errorf("%s: no position in %s", name, err)
		}
	}
}

func TestDeepButSaneNestingIsRead(t *testing.T) {
	body := fmt.Sprintf("job \"a\" {\n  meta {\n    x = %s1%s\n  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n    }\n  }\n}",
		strings.Repeat("(", 900), strings.Repeat(")", 900))
	if _, err := Parse(Config{Body: []byte(body)}); err != nil {
		t.Error(err)
	}
}

// TestALongLineIsShownInPart keeps the mark below its place.
func TestALongLineIsShownInPart(t *testing.T) {
	body := "job \"a\" {\n  meta = { x = \"" + strings.Repeat("é", 1000) + "\", y = nope(1) }\n}"
	_, err := Parse(Config{Body: []byte(body)})
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) < 3 || len([]rune(lines[1])) > maxLine+20 {
		t.Fatalf("got %s", err)
	}
	mark := strings.Index(lines[2], "^")
	if line := []rune(lines[1]); mark < 0 || mark >= len(line) || !strings.HasPrefix(string(line[mark:]), "nope") {
		t.Errorf("the mark is not below its place:\n%s", err)
	}
}

// TestOnlyCommentsMayHoldOtherEncodings: people's names in them are often older than UTF-8.
func TestOnlyCommentsMayHoldOtherEncodings(t *testing.T) {
	if _, err := Parse(Config{Body: []byte("# by J\xf6rg\njob \"x\" {} // gr\xfcn\n/* \xe4 */\n")}); err != nil {
		t.Error(err)
	}
	for _, body := range []string{"job \"x\xf6\" {}", "job x\xf6 {}", "job \"x\" {\n meta { a = \"\xf6\" }\n}", "job \"x\" {\n meta { \xf6 = 1 }\n}",
		"job \"x\" {\n meta { a = <<E\n\xf6\nE\n }\n}"} {
		if _, err := Parse(Config{Body: []byte(body)}); err == nil || !strings.Contains(err.Error(), "input.hcl:") {
			t.Errorf("%q: got %v", body, err)
		}
	}
}
