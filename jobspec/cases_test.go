package jobspec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
	"github.com/nomadlite/nomadlite/structs/jsontest"
)

// words splits a line of arguments as a POSIX shell does: blanks, single and double quotes.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote, open := rune(0), false
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\n' || r == '\t'):
			if open {
				out = append(out, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out
}

func caseConfig(t *testing.T, dir, file string) (jobspec.Config, []string) {
	t.Helper()
	base := filepath.Join("testdata", dir)
	body, err := os.ReadFile(filepath.Join(base, file))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(file, ".nomad.hcl"), ".nomad.json")
	cfg := jobspec.Config{Path: file, Body: body, BaseDir: base, AllowFS: true, Strict: true}
	var rest []string
	if args, err := os.ReadFile(filepath.Join(base, name+".args")); err == nil {
		list := words(string(args))
		for i := 0; i < len(list); i++ {
			flag, value, has := strings.Cut(strings.TrimLeft(list[i], "-"), "=")
			take := func() string {
				if has {
					return value
				}
				i++
				return list[i]
			}
			switch flag {
			case "var":
				cfg.Vars = append(cfg.Vars, take())
			case "var-file":
				cfg.VarFiles = append(cfg.VarFiles, take())
			case "hcl2-strict":
				cfg.Strict = value != "false"
			case "json":
			default:
				rest = append(rest, flag, take())
			}
		}
	}
	if env, err := os.ReadFile(filepath.Join(base, name+".env")); err == nil {
		cfg.Env = append(cfg.Env, strings.Split(strings.TrimSpace(string(env)), "\n")...)
	}
	return cfg, rest
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if job, ok := v["Job"].(map[string]any); ok {
		return job
	}
	return v
}

func cases(t *testing.T, dir string, atLeast int) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", dir))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".nomad.hcl") || strings.HasSuffix(e.Name(), ".nomad.json") {
			files = append(files, e.Name())
		}
	}
	if len(files) < atLeast {
		t.Fatalf("only %d cases in %s", len(files), dir)
	}
	return files
}

func TestValidCases(t *testing.T) {
	for _, file := range cases(t, "valid", 216) {
		t.Run(file, func(t *testing.T) {
			cfg, rest := caseConfig(t, "valid", file)
			result, err := jobspec.Parse(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+1 < len(rest); i += 2 {
				switch rest[i] { // flags of the command, applied to the job after parsing
				case "consul-namespace":
					result.Job.ConsulNamespace = structs.Ptr(rest[i+1])
				case "vault-namespace":
					result.Job.VaultNamespace = structs.Ptr(rest[i+1])
				default:
					t.Fatalf("unknown flag -%s", rest[i])
				}
			}
			got, err := structs.ParseView(result.Job)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".nomad.hcl"), ".nomad.json")
			want, err := os.ReadFile(filepath.Join("testdata", "valid", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range jsontest.Differences(decode(t, want), decode(t, got), "Job") {
				t.Error(d)
			}
		})
	}
}

func TestInvalidCases(t *testing.T) {
	for _, file := range cases(t, "invalid", 144) {
		t.Run(file, func(t *testing.T) {
			cfg, _ := caseConfig(t, "invalid", file)
			_, err := jobspec.Parse(cfg)
			if err == nil {
				t.Fatal("parsed without a fault")
			}
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".nomad.hcl"), ".nomad.json")
			facts, readErr := os.ReadFile(filepath.Join("testdata", "invalid", name+".err"))
			if readErr != nil {
				t.Fatal(readErr)
			}
			fields := strings.Fields(string(facts))
			line, convErr := strconv.Atoi(fields[1])
			if convErr != nil {
				t.Fatal(convErr)
			}
			if line == 0 {
				return
			}
			where := file
			if len(fields) > 2 {
				where = fields[2]
			}
			if want := fmt.Sprintf("%s:%d:", where, line); !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no fault at %s in:\n%s", fields[0], want, err)
			}
		})
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	_, err := jobspec.Parse(jobspec.Config{Path: "x.nomad.hcl", Body: []byte(`job "x" {
  prioritty = 3
  group "g" {
    cuont = 1
    task "t" {
      dirver = "exec"
      resources { memry = 5 }
    }
  }
}`)})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"x.nomad.hcl:2:3", `"priority"`, "x.nomad.hcl:4:5", `"count"`, "x.nomad.hcl:6:7", `"driver"`,
		"x.nomad.hcl:7:19", `"memory"`, "prioritty = 3", "^^^^^^^^^"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in:\n%s", want, err)
		}
	}
}

func TestFileFunctionsAreRefusedWithoutAFileSystem(t *testing.T) {
	_, err := jobspec.Parse(jobspec.Config{Body: []byte("job \"x\" {\n  meta { a = file(\"/etc/passwd\") }\n}")})
	if err == nil || !strings.Contains(err.Error(), "only available to the command line") {
		t.Fatalf("got %v", err)
	}
}

func TestNamesWithoutEffectAreWarnedAbout(t *testing.T) {
	for name, c := range map[string]struct{ body, place, word string }{
		"constraint": {"job \"x\" {\n  constraint { is_set = \"${meta.a}\" }\n}", "x:2:16", `operator = "is_set"`},
		"network": {"job \"x\" {\n  group \"g\" {\n    network {\n      reserved_ports \"a\" { static = 80 }\n    }\n  }\n}", "x:4:7",
			`port "NAME"`},
		"dynamic": {"job \"x\" {\n  group \"g\" {\n    network {\n      dynamic \"reserved_ports\" {\n        for_each = [1]\n" +
			"        labels = [\"a\"]\n        content {}\n      }\n    }\n  }\n}", "x:4:15", `port "NAME"`},
	} {
		result, err := jobspec.Parse(jobspec.Config{Path: "x", Body: []byte(c.body)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := jobspec.FormatDiagnostics(result.Warnings, result.Files, hcl.DiagWarning)
		if !strings.Contains(text, c.place) || !strings.Contains(text, c.word) {
			t.Errorf("%s: got %q", name, text)
		}
		for _, g := range result.Job.TaskGroups {
			if n := g.Networks[0]; len(n.ReservedPorts)+len(n.DynamicPorts) > 0 {
				t.Errorf("%s: it has an effect: %v", name, n)
			}
		}
	}
}

// TestWeightOfASpreadIsNotWrapped: a number that does not fit is refused.
func TestWeightOfASpreadIsNotWrapped(t *testing.T) {
	_, err := jobspec.Parse(jobspec.Config{Path: "x", Body: []byte("job \"x\" {\n  spread {\n    weight = 300\n  }\n}")})
	if err == nil || !strings.Contains(err.Error(), "x:3:14") || !strings.Contains(err.Error(), "127") {
		t.Errorf("got %v", err)
	}
}

func TestFaultsInJSONHaveAPlace(t *testing.T) {
	for body, place := range map[string]string{
		"{\n\"ID\": \"x\",\n\"Priority\": \"high\"\n}":              "x.json:3:",
		"{\n\"Job\": {\n\"ID\": \"x\",\n\"Priority\": 1e3\n}}":      "x.json:4:",
		"{\n\"Job\": {\n\"ID\": \"x\",\n\"Priority\": 50,,\n}}":     "x.json:4:",
		"{\n\"ID\": \"x\",\n\"TaskGroups\": [{\n\"Count\": true}]}": "x.json:4:",
	} {
		_, err := jobspec.Parse(jobspec.Config{Path: "x.json", Body: []byte(body)})
		if err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: got %v, want %s", body, err, place)
		}
	}
}
