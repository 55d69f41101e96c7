package scenariotest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the traces of the scenarios anew")

// Play plays every scenario of the package under test. begin makes the world of one file and gives what does a command
// there; that answers the lines of its trace.
func Play(t *testing.T, begin func(t *testing.T) func(Command) []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file, begin(t)) })
	}
}

func play(t *testing.T, file string, do func(Command) []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var played []string
	for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		commands, want, _ := strings.Cut(block, "\n----")
		var trace []string
		for line := range strings.Lines(commands) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				trace = append(trace, do(parse(t, line))...)
			}
		}
		got := strings.Join(trace, "\n")
		if got != strings.Trim(want, "\n") && !*rewrite {
			t.Errorf("%s, block %d:\n%s\n---- got\n%s\n---- want\n%s", file, i+1, commands, got, strings.Trim(want, "\n"))
		}
		played = append(played, strings.TrimSpace(strings.TrimSpace(commands)+"\n----\n"+got))
	}
	if !*rewrite {
		return
	}
	if err := os.WriteFile(file, []byte(strings.Join(played, "\n\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
