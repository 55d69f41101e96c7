package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
)

const (
	clientModule  = "github.com/hashicorp/nomad/api"
	clientVersion = "v0.0.0-20261016150620-df630b26e78a"
	passingFile   = "testdata/passing.txt"
	waitingFile   = "testdata/waiting.tsv"
	table         = "../../docs/compatibility.md"
	minimumTests  = 150 // the suite exits 0 when it cannot find the binary; a run of fewer tests is no run
	// parallel is how many of the suite's tests run at once: they mostly wait for an agent in steps of a second.
	parallel = "4"
)

var update = flag.Bool("update", false,
	"run also the tests that wait for something, and write the list of passing tests and docs/compatibility.md anew")

// areaNames renames test files whose area has another name in the documentation.
var areaNames = map[string]string{"util": "client library", "utils": "client library", "api": "client library", "ioutil": "client library",
	"retry": "client library", "error_unexpected_response": "client library", "constraint": "job structs", "compose": "job structs",
	"tasks": "job structs", "resources": "job structs", "consul": "job structs"}

// result is how one top-level test ended.
type result struct {
	name, area, outcome string
	output              []string
}

func TestOfficialClient(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the official client's tests need root: their agents run with the default isolation")
	}
	binary := os.Getenv("NOMADLITE_BIN")
	if binary == "" {
		t.Skip("NOMADLITE_BIN is not set; run this by `make conformance`")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:4646")
	if err != nil {
		t.Fatalf("port 4646 must be free: %v", err)
	}
	listener.Close()
	waiting := readWaiting(t)
	var skip []string
	if !*update {
		skip = slices.Sorted(maps.Keys(waiting))
	}
	results := run(t, prepare(t), binary, skip)
	if len(results) < minimumTests {
		t.Fatalf("only %d tests ran", len(results))
	}
	compare(t, results, waiting)
	if *update && !t.Failed() {
		write(t, results, waiting)
	}
}

// TestTable holds the two lists and the page for readers together: each is about the same tests.
func TestTable(t *testing.T) {
	passing, waiting := readPassing(t), readWaiting(t)
	raw, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	if want := fmt.Sprintf("| **all** | **%d** |", len(passing)); !strings.Contains(page, want) {
		t.Errorf("%s does not say that %d tests pass", table, len(passing))
	}
	for name, why := range waiting {
		if passing[name] {
			t.Errorf("%s is in both %s and %s", name, passingFile, waitingFile)
		}
		if !strings.Contains(page, "| "+name+" | ") || !strings.Contains(page, " | "+why+" |\n") {
			t.Errorf("%s does not say that %s waits for %s", table, name, why)
		}
	}
}

// prepare makes the throwaway module and gives its folder.
func prepare(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module conformance\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "go", "get", "-t", clientModule+"@"+clientVersion)
	return dir
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// run runs the suite, but for the tests to skip, with the binary called "nomad" first in PATH.
func run(t *testing.T, module, binary string, skip []string) []result {
	t.Helper()
	source := strings.TrimSpace(command(t, module, "go", "list", "-m", "-f", "{{.Dir}}", clientModule))
	areas := testAreas(t, source)
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "nomad")); err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-json", "-count=1", "-timeout", "15m", "-parallel", parallel}
	if len(skip) > 0 {
		args = append(args, "-skip", "^("+strings.Join(skip, "|")+")$")
	}
	cmd := exec.Command("go", append(args, clientModule)...)
	cmd.Dir = module
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "GOFLAGS=-mod=mod"}
	for _, word := range os.Environ() {
		name, _, _ := strings.Cut(word, "=")
		if name != "PATH" && name != "GOFLAGS" && name != "AWS_CA_BUNDLE" && !strings.HasPrefix(name, "NOMAD") {
			cmd.Env = append(cmd.Env, word)
		}
	}
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
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		top, _, isSub := strings.Cut(event.Test, "/")
		r := byName[top]
		if r == nil {
			r = &result{name: top, area: areas[top]}
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
	_ = cmd.Wait() // judged by the counts
	if len(byName) == 0 {
		t.Fatalf("the suite did not run: %s", errs.String())
	}
	results := make([]result, 0, len(byName))
	for _, r := range byName {
		if r.outcome == "" {
			r.outcome = "fail" // cut off
		}
		results = append(results, *r)
	}
	sort.Slice(results, func(i, j int) bool { return results[i].name < results[j].name })
	return results
}

// testAreas maps each test function to the area that its file is about.
func testAreas(t *testing.T, source string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	areas := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		area := strings.TrimSuffix(filepath.Base(file), "_test.go")
		if renamed, ok := areaNames[area]; ok {
			area = renamed
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				areas[fn.Name.Name] = strings.ReplaceAll(area, "_", " ")
			}
		}
	}
	return areas
}

// readWaiting reads which capability each test that does not pass waits for.
func readWaiting(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(waitingFile)
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[string]string{}
	for _, line := range strings.Split(string(raw), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, ok := strings.Cut(line, "\t")
		if !ok || why == "" {
			t.Fatalf("%s: %q is not TEST<tab>CAPABILITY", waitingFile, line)
		}
		waiting[name] = why
	}
	return waiting
}

// readPassing reads which tests passed when that was last written.
func readPassing(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(passingFile)
	if err != nil {
		t.Fatal(err)
	}
	passing := map[string]bool{}
	for _, name := range strings.Fields(string(raw)) {
		passing[name] = true
	}
	return passing
}

// compare fails for each test that passed before and does not now, for each that fails without a reason given, and for
// each whose reason is not true any more.
func compare(t *testing.T, results []result, waiting map[string]string) {
	t.Helper()
	passing := readPassing(t)
	ran := map[string]bool{}
	count := 0
	for _, r := range results {
		ran[r.name] = true
		switch {
		case r.outcome == "pass":
			count++
			if waiting[r.name] != "" {
				t.Errorf("%s passes: take it out of %s", r.name, waitingFile)
			}
		case passing[r.name]:
			t.Errorf("%s passed before, now: %s\n%s", r.name, r.outcome, last(r.output, 60))
		case r.outcome == "fail" && waiting[r.name] == "":
			t.Errorf("%s (%s) fails and %s does not say what it waits for\n%s", r.name, r.area, waitingFile, last(r.output, 60))
		}
	}
	for name := range passing {
		if !ran[name] {
			t.Errorf("%s passed before and did not run", name)
		}
	}
	for name := range waiting {
		if *update && !ran[name] {
			t.Errorf("%s is in %s and is no test", name, waitingFile)
		}
	}
	t.Logf("%d of %d tests pass, %d known to wait for something", count, len(results), len(waiting))
}

func last(lines []string, n int) string {
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "")
}

// write puts the results where the next run and the reader find them.
func write(t *testing.T, results []result, waiting map[string]string) {
	t.Helper()
	type counts struct{ pass, fail, skip int }
	byArea := map[string]*counts{}
	total := &counts{}
	var passed []string
	var open []result
	for _, r := range results {
		c := byArea[r.area]
		if c == nil {
			c = &counts{}
			byArea[r.area] = c
		}
		switch r.outcome {
		case "pass":
			c.pass++
			total.pass++
			passed = append(passed, r.name)
		case "skip":
			c.skip++
			total.skip++
			open = append(open, r)
		default:
			c.fail++
			total.fail++
			open = append(open, r)
		}
	}
	if err := os.WriteFile(passingFile, []byte(strings.Join(passed, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Compatibility\n\n`make conformance` runs the tests of the official Go client (`%s`, %s)\n"+
		"against the built binary. This page is written by `make conformance UPDATE=1`, which runs all tests; without it\n"+
		"those that wait for something are left out. Both fail when a test that passed before does not pass any more.\n\n| area | passed | failed | skipped |\n|---|---|---|---|\n", clientModule, clientVersion)
	areas := make([]string, 0, len(byArea))
	for a := range byArea {
		areas = append(areas, a)
	}
	sort.Strings(areas)
	for _, a := range areas {
		c := byArea[a]
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", a, c.pass, c.fail, c.skip)
	}
	fmt.Fprintf(&b, "| **all** | **%d** | **%d** | **%d** |\n\n## What does not pass yet, and what it waits for\n\n"+
		"| test | area | outcome | waits for |\n|---|---|---|---|\n", total.pass, total.fail, total.skip)
	sort.SliceStable(open, func(i, j int) bool { return open[i].area < open[j].area })
	for _, r := range open {
		why := waiting[r.name]
		if why == "" && r.outcome == "skip" {
			why = "the suite skips it by itself"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, r.area, r.outcome, why)
	}
	if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
