package jobspec

import (
	"fmt"
	"strings"
	"testing"
)

// Texts that would cost the parser minutes or gigabytes are not given to it; those that are large for a reason are.
func TestTextsOutOfProportionAreRefused(t *testing.T) {
	in := func(form, piece string, n int) string {
		return "job \"a\" {\n meta {\n  x = " + fmt.Sprintf(form, strings.Repeat(piece, n)) + "\n }\n}\n"
	}
	for _, c := range []struct {
		name, text string
		word       string // of the fault; empty: none
	}{
		{"lines of a heredoc", in("<<E\n%s\nE", "a\n", 200_000), "in quoted texts"},
		{"dollars", in("\"%s\"", "$a", 40_000), "in quoted texts"},
		{"percents", in("<<-E\n%s\nE", "% ", 40_000), "in quoted texts"},
		{"several heredocs", strings.Repeat("a = <<E\n"+strings.Repeat("a\n", 40_000)+"E\n", 4), "in quoted texts"},
		{"groups", "job \"a\" {\n" + strings.Repeat("group \"g\" {\n}\n", 200_000) + "}", "lines, brackets"},
		{"elements", in("[%s]", "1,", 500_000), "lines, brackets"},
		{"interpolations", in("\"%s\"", "${1}", 20_000), "in quoted texts"},
		{"an open quote", "a = \"\\", "is not"},
		{"an open heredoc", "a = <<E\nx", "heredoc"},
		{"an open comment", "a = 1 /*", "comment"},

		{"one long line", in("\"%s\"", "x,=[]", 2_000_000), ""},
		{"JSON in a heredoc", in("<<E\n%s\nE", "{\"a\": [1, 2, 3]},\n", 5_000), ""},
		{"a script", in("<<E\n%s\nE", "echo $a $b $(c)\n", 1_000), ""},
		{"comments", strings.Repeat("# { [ ( $ % \" <<E\n", 50_000) + "/*" + strings.Repeat("{", 500) + "*/ job \"a\" {}", ""},
	} {
		fault := tooLarge([]byte(c.text), "x")
		switch {
		case fault != nil && !strings.Contains(fault.Detail, c.word), fault != nil && c.word == "":
			t.Errorf("%s: %s", c.name, fault)
		case fault == nil && strings.HasPrefix(c.word, "lines") || fault == nil && strings.HasPrefix(c.word, "in "):
			t.Errorf("%s is read", c.name)
		case fault == nil && c.word != "":
			if _, err := Parse(Config{Body: []byte(c.text)}); err == nil {
				t.Errorf("%s has no fault", c.name)
			}
		}
	}
}
