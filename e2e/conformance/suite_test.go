package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// areaNames renames test files whose area has another name in the documentation.
var areaNames = map[string]string{"util": "client library", "utils": "client library", "api": "client library", "ioutil": "client library",
	"retry": "client library", "error_unexpected_response": "client library", "constraint": "job structs", "compose": "job structs",
	"tasks": "job structs", "resources": "job structs", "consul": "job structs"}

// suite is the official client's tests, with the binary under test called "nomad" first in PATH.
type suite struct {
	module string // the throwaway module
	env    []string
	tests  map[string]function
}

// function is a test function of the suite.
type function struct {
	area  string // what its file is about
	agent bool   // it starts the binary
}

// result is how one top-level test ended.
type result struct {
	name, area, outcome string
	output              []string
}

// newSuite makes the throwaway module and reads which tests there are.
func newSuite(t *testing.T, binary string) *suite {
	t.Helper()
	s := &suite{module: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.module, "go.mod"), []byte("module conformance\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.command(t, "go", "get", "-t", clientModule+"@"+clientVersion)
	source := strings.TrimSpace(s.command(t, "go", "list", "-m", "-f", "{{.Dir}}", clientModule))
	s.tests = readFunctions(t, source)
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "nomad")); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "GOFLAGS=-mod=mod"}
	for _, word := range os.Environ() {
		name, _, _ := strings.Cut(word, "=")
		if name != "PATH" && name != "GOFLAGS" && name != "AWS_CA_BUNDLE" && !strings.HasPrefix(name, "NOMAD") {
			s.env = append(s.env, word)
		}
	}
	return s
}

func (s *suite) command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.module
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// readFunctions reads the sources: which test functions there are, and which of them start the binary.
func readFunctions(t *testing.T, source string) map[string]function {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	areas, calls := map[string]string{}, map[string]map[string]bool{}
	for _, file := range files {
		if match, err := build.Default.MatchFile(source, filepath.Base(file)); err != nil || !match {
			continue // of another edition or system
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		area := strings.TrimSuffix(filepath.Base(file), "_test.go")
		if renamed, ok := areaNames[area]; ok {
			area = renamed
		}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			calls[fn.Name.Name] = namesIn(fn)
			if strings.HasPrefix(fn.Name.Name, "Test") {
				areas[fn.Name.Name] = strings.ReplaceAll(area, "_", " ")
			}
		}
	}
	tests := map[string]function{}
	for name, area := range areas {
		tests[name] = function{area, reaches(calls, name, "NewTestServer", map[string]bool{})}
	}
	return tests
}

// namesIn gives all that a function mentions.
func namesIn(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id != fn.Name {
			names[id.Name] = true
		}
		return true
	})
	return names
}

// reaches says whether a function mentions another, itself or by those that it mentions.
func reaches(calls map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if calls[from][to] {
		return true
	}
	seen[from] = true
	for name := range calls[from] {
		if calls[name] != nil && !seen[name] && reaches(calls, name, to, seen) {
			return true
		}
	}
	return false
}

// run runs all tests but those to skip. Those that start the binary run side by side. The others are about the client
// library alone; a panic of one ends them all, so that they run by themselves, one after the other.
func (s *suite) run(t *testing.T, skip map[string]string) []result {
	t.Helper()
	var agent, library []string
	for name, fn := range s.tests {
		if _, ok := skip[name]; ok {
			continue
		}
		if fn.agent {
			agent = append(agent, name)
		} else {
			library = append(library, name)
		}
	}
	byName := s.execute(t, agent, parallel)
	for name, r := range s.execute(t, library, "1") {
		byName[name] = r
	}
	results := make([]result, 0, len(byName))
	for _, r := range byName {
		results = append(results, *r)
	}
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.name, b.name) })
	return results
}

// execute runs the named tests. How it ends is judged by the tests that ended.
func (s *suite) execute(t *testing.T, names []string, parallel string) map[string]*result {
	t.Helper()
	slices.Sort(names)
	cmd := exec.Command("go", "test", "-json", "-count=1", "-vet=off", "-timeout", "15m", "-parallel", parallel,
		"-run", "^("+strings.Join(names, "|")+")$", clientModule)
	cmd.Dir, cmd.Env = s.module, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Agents that a test which was cut off has left behind are in the same process group.
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	byName := map[string]*result{}
	var rest []string // output of no test
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		if event.Test == "" {
			rest = append(rest, event.Output)
			continue
		}
		top, _, isSub := strings.Cut(event.Test, "/")
		r := byName[top]
		if r == nil {
			r = &result{name: top, area: s.tests[top].area, outcome: "fail"} // if it is cut off
			byName[top] = r
		}
		switch event.Action {
		case "pass", "fail", "skip":
			if !isSub {
				r.outcome = event.Action
			}
		case "output":
			r.output = append(r.output, event.Output)
		}
	}
	if err := cmd.Wait(); err != nil && len(byName) < len(names) {
		t.Logf("%d of %d tests ran: %v\n%s%s", len(byName), len(names), err, last(rest, 40), errs.String())
	}
	return byName
}
