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

// seededFault is a plausible fault of the product, kept as a patch, and the invariant which it breaks.
type seededFault struct {
	path, fault, invariant string
}

// root is the top of the tree.
func root(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func seededFaults(t *testing.T) []seededFault {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(t), "e2e/clustersim/testdata/faults/*.patch"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("found %d seeded faults (%v), want ten at least", len(paths), err)
	}
	var out []seededFault
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := seededFault{path: path}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan() && lines.Text() != ""; {
			if text, ok := strings.CutPrefix(lines.Text(), "Fault: "); ok {
				f.fault = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "Invariant: "); ok {
				f.invariant = text
			}
		}
		if f.fault == "" || f.invariant == "" {
			t.Errorf("%s does not begin with its lines Fault and Invariant", filepath.Base(path))
		}
		out = append(out, f)
	}
	return out
}

func patch(t *testing.T, dir, path string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append(append([]string{"apply", "-p0"}, args...), path)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply any more: write it anew for the code as it is, or find another fault.\n%s", filepath.Base(path), out)
	}
}

// TestSeededFaultsApply keeps the patches in step with the code.
func TestSeededFaultsApply(t *testing.T) {
	for _, f := range seededFaults(t) {
		t.Run(filepath.Base(f.path), func(t *testing.T) { patch(t, root(t), f.path, "--check") })
	}
}

// TestSeededFaultsAreFound puts each fault into a copy of the tree and demands that the sequences there find it.
func TestSeededFaultsAreFound(t *testing.T) {
	only := os.Getenv("CLUSTERSIM_FAULTS")
	if only == "" {
		t.Skip("it builds the tree once for each fault: CLUSTERSIM_FAULTS=all, or a part of a patch's name, asks for it")
	}
	dir := t.TempDir()
	copyTree(t, root(t), dir)
	for _, f := range seededFaults(t) {
		if only != "all" && !strings.Contains(filepath.Base(f.path), only) {
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
