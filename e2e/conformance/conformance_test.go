package conformance

import (
	"flag"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
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
	// unstable begins the reason of a test that starts no agent and passes or fails by chance: it is never run.
	unstable = "nothing of ours: "
)

var update = flag.Bool("update", false,
	"run also the tests that wait for something, and write the list of passing tests and docs/compatibility.md anew")

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
	skip := waiting
	if *update {
		skip = map[string]string{}
		for name, why := range waiting {
			if strings.HasPrefix(why, unstable) {
				skip[name] = why
			}
		}
	}
	results := newSuite(t, binary).run(t, skip)
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
		if *update && !ran[name] && !strings.HasPrefix(waiting[name], unstable) {
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
	for name, why := range waiting {
		if strings.HasPrefix(why, unstable) {
			results = append(results, result{name: name, area: "locks", outcome: "skip"})
		}
	}
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
		"those that wait for something are left out. Both fail when a test that passed before does not pass any more. The\n"+
		"established system passes 253 of them.\n\n| area | passed | failed | skipped |\n|---|---|---|---|\n", clientModule, clientVersion)
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
