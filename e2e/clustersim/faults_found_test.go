//go:build prop

package clustersim

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSeededFaultsAreFound puts each fault into a copy of the tree and demands that the sequences there find it:
// all of them, or those with a part of CLUSTERSIM_FAULTS in their patch's name. It builds the tree once for each, so it is
// part of the long form alone.
func TestSeededFaultsAreFound(t *testing.T) {
	only := os.Getenv("CLUSTERSIM_FAULTS")
	dir := t.TempDir()
	copyTree(t, root(t), dir)
	for _, f := range seededFaults(t) {
		if only != "" && only != "all" && !strings.Contains(filepath.Base(f.path), only) {
			continue
		}
		t.Run(filepath.Base(f.path), func(t *testing.T) {
			patch(t, dir, f.path)
			defer patch(t, dir, f.path, "-R")
			cmd := exec.Command("go", "test", "-trimpath", "-count=1", "-run", "TestSequences", "./e2e/clustersim")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "CLUSTERSIM_SEQUENCES=3000", "CLUSTERSIM_FIRST=1", "CLUSTERSIM_TRACE=1", "CLUSTERSIM_EXPECT="+f.invariant)
			out, err := cmd.CombinedOutput()
			found := strings.Count(string(out), "INVARIANT "+f.invariant+":")
			t.Logf("seeded fault %s broke %q %d times; %s", filepath.Base(f.path), f.invariant, found, lastLine(out, "sequences of"))
			if err == nil || found == 0 {
				t.Errorf("the simulation does not find it as %q:\n%s", f.invariant, out)
			}
		})
	}
}

func lastLine(out []byte, with string) string {
	line := ""
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if strings.Contains(lines.Text(), with) {
			line = strings.TrimSpace(lines.Text())
		}
	}
	return line
}

// copyTree copies what is built and tested.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (rel == ".git" || rel == "bin" || rel == "build"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
