package jobspec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// laughs are locals of which each doubles the one before.
func laughs(n int, first, next string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  l0 = %s\n", first)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  l%d = %s\n", i, strings.ReplaceAll(next, "PREV", fmt.Sprintf("local.l%d", i-1)))
	}
	return b.String() + "}\n"
}

const sane = "job \"x\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n    }\n  }\n}\n"

func meta(expr string) string { return "job \"x\" {\n  meta = { a = " + expr + " }\n}\n" }

// hostile are texts which mean far more than they say.
func hostile() map[string]string {
	big := "local.l20"
	thousand := "range(1000)"
	text20 := laughs(21, `"0123456789abcdef"`, `"${PREV}${PREV}"`)
	return map[string]string{
		"doubled templates":     laughs(60, `"lol"`, `"${PREV}${PREV}"`) + sane,
		"doubled heredocs":      laughs(60, `"lol"`, "<<E\n${PREV}\n${PREV}\nE") + sane,
		"doubled lists":         laughs(60, `["lol"]`, `[PREV, PREV]`) + sane,
		"doubled maps":          laughs(60, `{ a = "lol" }`, `{ a = PREV, b = PREV }`) + sane,
		"doubled by concat":     laughs(60, `["lol"]`, `concat(PREV, PREV)`) + sane,
		"doubled by join":       laughs(60, `"lol"`, `join(PREV, [PREV, PREV, PREV])`) + sane,
		"doubled by format":     laughs(60, `"lol"`, `format("%s%s", PREV, PREV)`) + sane,
		"doubled by encoding":   laughs(60, `"\"lol"`, `jsonencode([PREV, PREV])`) + sane,
		"doubled by yaml":       laughs(60, `"lol"`, `yamlencode([PREV, PREV])`) + sane,
		"doubled by flatten":    laughs(60, `["lol"]`, `flatten([PREV, PREV])`) + sane,
		"doubled by a splat":    laughs(60, `[1, 2]`, `[PREV[*], PREV[*]]`) + sane,
		"doubled by a choice":   laughs(60, `["lol"]`, `true ? [PREV, PREV] : [PREV]`) + sane,
		"doubled in try":        laughs(60, `["lol"]`, `try([PREV, PREV], 1)`) + sane,
		"squared numbers":       laughs(60, `10`, `PREV * PREV`) + sane,
		"nested for":            meta("[for a in " + thousand + " : [for b in " + thousand + " : [for c in " + thousand + " : \"x\"]]]"),
		"nested for with ifs":   meta("[for a in " + thousand + " : [for b in " + thousand + " : [for c in " + thousand + " : 1 if false]]]"),
		"nested for of maps":    meta("{ for a in " + thousand + " : a => { for b in " + thousand + " : b => { for c in " + thousand + " : c => 1 } } }"),
		"nested template loops": meta(`"%{for a in range(1000)}%{for b in range(1000)}%{for c in range(1000)}x%{endfor}%{endfor}%{endfor}"`),
		"faulty rounds":         meta("[for a in " + thousand + " : [for b in " + thousand + " : [for c in " + thousand + " : nope(1)]]]"),
		"try in rounds":         meta("[for a in " + thousand + " : [for b in " + thousand + " : [for c in " + thousand + " : try(nope(1), 1)]]]"),
		"default value": "variable \"v\" {\n  default = [for a in [1,2,3,4,5,6,7,8,9,0] : [for b in [1,2,3,4,5,6,7,8,9,0] : " +
			strings.Repeat("[for x in [1,2,3,4,5,6,7,8,9,0] : ", 12) + "1" + strings.Repeat("]", 12) + "]]\n}\n" + sane,
		"set products":     meta("setproduct(" + thousand + ", " + thousand + ", " + thousand + ")"),
		"wide format":      meta(`format("%999999999d", 1)`),
		"precise format":   meta(`format("%.999999999f", 1)`),
		"wide formatlist":  meta(`formatlist("%999999999s", ["a"])`),
		"indentation":      meta(`indent(999999999, "a\nb")`),
		"negative indent":  meta(`indent(-5, "a\nb")`),
		"replacement":      text20 + meta(`replace(`+big+`, "a", `+big+`)`),
		"expression":       text20 + meta(`replace(`+big+`, "/./", `+big+`)`),
		"split":            text20 + meta(`split("", `+big+`)`),
		"joined":           text20 + meta(`join(`+big+`, `+thousand+`)`),
		"listed":           text20 + meta(`formatlist("%s%s", `+big+`, `+thousand+`)`),
		"distinct":         meta(`distinct(flatten([for a in ` + thousand + ` : [for b in ` + thousand + ` : "${a}-${b}"]]))`),
		"bcrypt":           meta(`bcrypt("x", 31)`),
		"many bcrypts":     meta(`[for a in ` + thousand + ` : bcrypt("x", 11)]`),
		"number":           meta("1e999999999"),
		"small number":     meta("1e-999999999"),
		"count":            "job \"x\" {\n  group \"g\" {\n    count = 1e999999999\n  }\n}\n",
		"priority":         "job \"x\" {\n  priority = 99999999999999999999999999\n}\n",
		"number in config": "job \"x\" {\n  group \"g\" {\n    task \"t\" {\n      config {\n        a = 1e999999999\n      }\n    }\n  }\n}\n",
		"number as text":   meta(`"${1e999999999}"`),
		"number in JSON":   meta(`jsondecode("1e999999999")`),
		"number in YAML":   meta(`yamldecode("a: 1e999999999")`),
		"power":            meta(`pow(10, 999999999)`),
		"product":          meta("1e1000 * 1e1000 * 1e1000"),
		"division by zero": meta("1 / 0"),
		"digits":           meta(`parseint("` + strings.Repeat("9", 200000) + `", 10)`),
		"YAML aliases":     meta("yamldecode(<<E\n" + yamlLaughs(40) + "E\n)"),
		"dynamic blocks": "job \"x\" {\n  dynamic \"group\" {\n    for_each = range(1000)\n    labels = [\"g${group.value}\"]\n    content {\n" +
			"      dynamic \"task\" {\n        for_each = range(1000)\n        labels = [\"t\"]\n        content {\n" +
			"          dynamic \"service\" {\n            for_each = range(1000)\n            content {}\n          }\n        }\n      }\n    }\n  }\n}\n",
		"dynamic without end": "job \"x\" {\n  dynamic \"group\" {\n    for_each = flatten([for a in range(1000) : range(1000)])\n    labels = [\"a\"]\n    content {}\n  }\n}\n",
		"minus signs":         meta(strings.Repeat("-", 100000) + "1"),
		"exclamation marks":   meta(strings.Repeat("!", 100000) + "true"),
		"sums":                meta("1" + strings.Repeat("+1", 100000)),
		"choices":             meta(strings.Repeat("true?1:", 20000) + "1"),
		"look-ups":            meta("a" + strings.Repeat("[b]", 50000)),
		"attributes":          meta("a" + strings.Repeat(".b", 50000) + " + 1 + nope()"),
		"splats":              meta("[1]" + strings.Repeat("[*]", 50000)),
		"template ifs":        meta(`"` + strings.Repeat("%{if true}", 20000) + strings.Repeat("%{endif}", 20000) + `"`),
		"interpolations":      meta(`"` + strings.Repeat("${nope()}", 9000) + `"`),
	}
}

func yamlLaughs(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol]\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	return b.String()
}

// TestHostileExpressionsAreRefusedCheaply: each is refused with a position, or read, within bounds of time and memory.
// All but one have a sixteenth of the usual budget, since what is tested is that they are stopped.
func TestHostileExpressionsAreRefusedCheaply(t *testing.T) {
	whole := map[string]bool{"doubled lists": true}
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			budget := evaluationBudget / 16
			if whole[name] {
				budget = evaluationBudget
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			_, err := parseWithin(Config{Body: []byte(body)}, budget)
			took := time.Since(begun)
			runtime.ReadMemStats(&after)
			used := (after.TotalAlloc - before.TotalAlloc) >> 20
			text := ""
			if err != nil {
				text = err.Error()
			}
			if err != nil && !strings.Contains(text, "input.hcl:") {
				t.Errorf("no position in %s", text)
			}
			if len(text) > 200000 {
				t.Errorf("the message has %d bytes", len(text))
			}
			if used > 1500 {
				t.Errorf("%d MiB were allocated", used)
			}
			if took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
