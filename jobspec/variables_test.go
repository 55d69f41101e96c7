package jobspec_test

import (
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// encoded parses a job whose meta holds the value of the variable v as JSON.
func encoded(declaration, file string, words ...string) (string, error) {
	body := "job \"x\" {\n meta {\n  v = jsonencode(var.v)\n }\n}\n" + declaration
	result, err := jobspec.Parse(jobspec.Config{Path: "x", Body: []byte(body), Strict: true, VarContent: file, Vars: words})
	if err != nil {
		return "", err
	}
	return result.Job.Meta["v"], nil
}

// A variable without a type has that of its default, whichever way its value comes; a collection only has to be one.
func TestVariableWithoutTypeTakesThatOfItsDefault(t *testing.T) {
	for _, c := range []struct{ def, word, want string }{
		{"5", "16", "16"},
		{"true", "false", "false"},
		{`"a"`, "[1]", `"[1]"`},
		{`["a"]`, `["b", 2]`, `["b",2]`},
		{`[]`, `["b"]`, `["b"]`},
		{`{ a = 1 }`, `{ b = [true] }`, `{"b":[true]}`},
		{"null", "yz", `"yz"`},
	} {
		for _, declaration := range []string{"variable \"v\" {\n default = " + c.def + "\n}", "variables {\n v = " + c.def + "\n}"} {
			if got, err := encoded(declaration, "", "v="+c.word); err != nil || got != c.want {
				t.Errorf("%s, given %s: %s, want %s: %v", declaration, c.word, got, c.want, err)
			}
		}
	}
	for _, c := range []struct{ def, file, want string }{
		{"5", `"16"`, "16"}, {`"a"`, "5", `"5"`}, {`["a"]`, `["b", 2]`, `["b",2]`}, {`["a"]`, "null", "null"}, {"null", "[1]", "[1]"},
	} {
		if got, err := encoded("variable \"v\" {\n default = "+c.def+"\n}", "v = "+c.file); err != nil || got != c.want {
			t.Errorf("default %s, file %s: %s, want %s: %v", c.def, c.file, got, c.want, err)
		}
	}
	for def, word := range map[string]string{"5": "much", "true": "yes", `["a"]`: "5", `{ a = 1 }`: `"text"`} {
		if got, err := encoded("variable \"v\" {\n default = "+def+"\n}", "", "v="+word); err == nil {
			t.Errorf("default %s, given %s: %s", def, word, got)
		}
	}
}

// A word where a number or a list has to be is no reference that is not allowed: whoever writes it forgot what is wanted.
func TestAWordOfTheWrongTypeIsToldWhatIsWanted(t *testing.T) {
	for _, c := range []struct{ declaration, word, want string }{
		{"type = number", "two", `It needs a value of type number, and "two" is none`},
		{"type = list(string)", "abc", `It needs a value of type list(string), and "abc" is none`},
		{"type = list(string)", `["a", b]`, "text inside of a value needs quotes"},
		{"default = []", "abc", `It needs a list or an object, and "abc" is none`},
	} {
		_, err := encoded("variable \"v\" {\n "+c.declaration+"\n}", "", "v="+c.word)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Variables not allowed") {
			t.Errorf("%s, given %s: %v", c.declaration, c.word, err)
		}
	}
}

// A value that is faulty is one fault: the variable is not told to have no value, too.
func TestFaultyValueIsNoMissingOne(t *testing.T) {
	for _, c := range []struct{ file, word string }{{"", "v=abc"}, {"", "v=["}, {"v = local.x", ""}} {
		var words []string
		if c.word != "" {
			words = []string{c.word}
		}
		_, err := encoded("variable \"v\" {\n type = number\n}", c.file, words...)
		if err == nil || strings.Contains(err.Error(), "No value") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Editors of one family put a byte order mark before text; it is no part of a job in either language.
func TestByteOrderMarkIsSkipped(t *testing.T) {
	for _, body := range []string{"job \"x\" {}", `{"ID": "x", "Name": "x"}`, ` {"Job": {"ID": "x", "Name": "x"}}`} {
		result, err := jobspec.Parse(jobspec.Config{Body: []byte("\ufeff" + body)})
		if err != nil || structs.Val(result.Job.ID) != "x" {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, file := range []string{"v = 5", `{"v": 5}`} {
		if got, err := encoded("variable \"v\" {\n type = number\n}", "\ufeff"+file); err != nil || got != "5" {
			t.Errorf("%s: %s: %v", file, got, err)
		}
	}
}
