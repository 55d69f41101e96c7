package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the binary, built stripped as releases are, since its size and memory are measured.
var built = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("NOMADLITE_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "nomadlite-bin")
	if err != nil {
		return "", fmt.Errorf("make folder for the binary: %w", err)
	}
	bin := filepath.Join(dir, "nomadlite")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "github.com/nomadlite/nomadlite")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return bin, nil
})

// Binary gives the path of the binary under test.
func Binary(t testing.TB) string {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}
