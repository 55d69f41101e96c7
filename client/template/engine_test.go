package template

import (
	"os"
	"strings"
	"testing"

	dep "github.com/hashicorp/consul-template/dependency"
	"go.uber.org/goleak"
)

// TestMain lets the test binary be the process of a pass, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(Main(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

func TestFunctions(t *testing.T) {
	web := Query{Kind: Service, Name: "web"}
	known := []Known{
		{web, Answer{Services: []*dep.NomadService{{Name: "web", Address: "10.0.0.1", Port: 80}, {Name: "web", Address: "10.0.0.2", Port: 81}}}},
		{Query{Kind: Service, Name: "web", Tag: "v1", Region: "eu", Choose: "1|k"}, Answer{Services: []*dep.NomadService{{Address: "10.0.0.3"}}}},
		{Query{Kind: Services}, Answer{Names: []*dep.NomadServicesSnippet{{Name: "web", Tags: []string{"a"}}}}},
		{Query{Kind: File, Name: "local/x"}, Answer{Text: "from a file"}},
	}
	for text, want := range map[string]string{
		`{{ env "A" }}|{{ env "NOT_SET" }}|{{ envOrDefault "B" "none" }}|{{ env "node.class" }}`: "1||none|big",
		`{{ range nomadService "web" }}{{ .Address }}:{{ .Port }} {{ end }}`:                     "10.0.0.1:80 10.0.0.2:81 ",
		`{{ range nomadService 1 "k" "v1.web@eu" }}{{ .Address }}{{ end }}`:                      "10.0.0.3",
		`{{ range nomadServices }}{{ .Name }} {{ .Tags | join "," }}{{ end }}`:                   "web a",
		`{{ file "local/x" }}{{ file "" }}`:                                                      "from a file",
		`{{ range loop 3 }}{{ . }}{{ end }}{{ "b" | toUpper }}{{ "YQ==" | base64Decode }}`:       "012Ba",
		`{{ with parseJSON "{\"a\":[1,2]}" }}{{ .a | toJSON }}{{ .missing }}{{ end }}`:           "[1,2]<no value>",
		`{{ "a-b" | split "-" | join "+" }} {{ sprig_upper "x" }} {{ add 1 2 }}`:                 "a+b X 3",
		`{{ regexReplaceAll "[0-9]" "#" "a1b2" }}`:                                               "a#b#",
		`[[ a ]]`: "[[ a ]]",
		``:        "",
	} {
		got := Execute(&Request{Contents: text, Env: []string{"A=1", "node.class=big"}, Known: known})
		if got.Fault != "" || string(got.Output) != want || len(got.Missing) != 0 {
			t.Errorf("%s: got %q, %s, missing %v; want %q", text, got.Output, got.Fault, got.Missing, want)
		}
	}
	got := Execute(&Request{Contents: "[[ env `A` ]] {{", LeftDelim: "[[", RightDelim: "]]", Env: []string{"A=1"}})
	if string(got.Output) != "1 {{" {
		t.Errorf("other delimiters: %q %s", got.Output, got.Fault)
	}
}

func TestMissing(t *testing.T) {
	got := Execute(&Request{Contents: `{{ with index (nomadService "a") 0 }}{{ .Port }}{{ end }}{{ nomadService "b" }}`})
	if len(got.Missing) != 1 || got.Missing[0].Name != "a" { // what comes after the error is not seen in this pass
		t.Errorf("missing %v, error %q", got.Missing, got.Fault)
	}
}

func TestFaultsHaveTheirPosition(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb {{ if }}":                         "line 2: missing value for if",
		"a\n{{ nothing }}":                      `line 2: function "nothing" not defined`,
		"\n\n {{ parseInt `x` }}":               "line 3:4: at <parseInt `x`>: error calling parseInt",
		"{{ key `a` }}":                         "line 1:3: at <key `a`>: error calling key: key needs Consul or Vault",
		"{{ with secret `a/b` }}{{ end }}":      "secret needs Consul or Vault",
		"{{ plugin `sh` }}":                     "line 1:3: at <plugin `sh`>: error calling plugin: function is disabled",
		"{{ writeToFile `/x` `` `` `644` `a`}}": "error calling writeToFile: function is disabled",
		"{{ define `a` }}{{ executeTemplate `a` }}{{ end }}{{ executeTemplate `a` }}": "function is disabled",
		"{{ (parseJSON `{}`).a }}": "",
		"{{ nomadService `` }}":    "invalid format",
		"{{ nomadService 1 2 3 }}": "must be a whole number and the key a string",
	} {
		got := Execute(&Request{Contents: text, Denylist: DefaultDenylist()})
		if want == "" != (got.Fault == "") || !strings.Contains(got.Fault, want) {
			t.Errorf("%q: %q, want %q", text, got.Fault, want)
		}
	}
	strict := Execute(&Request{Contents: "\n{{ (parseJSON `{}`).a }}", ErrMissingKey: true})
	if !strings.Contains(strict.Fault, "line 2:") || !strings.Contains(strict.Fault, "no entry for key") {
		t.Errorf("missing key: %q", strict.Fault)
	}
	vars := Execute(&Request{Contents: "\n{{ nomadVar `a/b` }}", Known: []Known{{Query{Kind: Var, Name: "a/b"}, Answer{Fault: "not stored"}}}})
	if !strings.Contains(vars.Fault, "line 2:3:") || !strings.Contains(vars.Fault, "not stored") {
		t.Errorf("variables: %q", vars.Fault)
	}
}
