package clustersim

import (
	"bufio"
	"bytes"
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
