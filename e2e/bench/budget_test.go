package bench

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/e2e/proc"
)

// Budgets of the initialisation of all packages together: every process of the binary pays it, the supervisor and each
// call of the command line too.
const (
	initBytes = 3 << 20
	initMS    = 10
)

type initCost struct {
	pkg   string
	ms    float64
	bytes int64
}

var initLine = regexp.MustCompile(`^init (\S+) @\S+ ms, (\S+) ms clock, (\d+) bytes, \d+ allocs$`)

func parseInitTrace(text string) ([]initCost, error) {
	var costs []initCost
	for line := range strings.Lines(text) {
		m := initLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		ms, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		bytes, err := strconv.ParseInt(m[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		costs = append(costs, initCost{m[1], ms, bytes})
	}
	if len(costs) == 0 {
		return nil, fmt.Errorf("no line of a package's init in %q", text)
	}
	return costs, nil
}

// TestInitBudget holds what packages do before main. The bytes are the same in each run and are held strictly. The time
// depends on who else uses the machine, so the best of some runs counts, with room.
func TestInitBudget(t *testing.T) {
	best := 0.0
	for i := range 5 {
		cmd := exec.Command(proc.Binary(t), "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("run version: %v\n%s", err, errs.String())
		}
		costs, err := parseInitTrace(errs.String())
		if err != nil {
			t.Fatal(err)
		}
		ms, bytes := 0.0, int64(0)
		for _, c := range costs {
			ms += c.ms
			bytes += c.bytes
		}
		if i == 0 || ms < best {
			best = ms
		}
		if bytes > initBytes {
			slices.SortFunc(costs, func(a, b initCost) int { return cmp.Compare(b.bytes, a.bytes) })
			t.Fatalf("initialisation of all packages takes %d bytes, budget %d; the largest: %+v", bytes, initBytes, costs[:min(8, len(costs))])
		}
		if i == 0 {
			slices.SortFunc(costs, func(a, b initCost) int { return cmp.Compare(b.ms, a.ms) })
			t.Logf("%d packages, %d KiB, %.2f ms; the slowest: %+v", len(costs), bytes>>10, ms, costs[:min(5, len(costs))])
		}
	}
	t.Logf("best of five: %.2f ms", best)
	if best > initMS {
		t.Errorf("initialisation of all packages takes %.2f ms, budget %d ms", best, initMS)
	}
}

func TestParseInitTrace(t *testing.T) {
	costs, err := parseInitTrace("init runtime @0.022 ms, 0.037 ms clock, 16 bytes, 1 allocs\nother\ninit a/b @1.5 ms, 0 ms clock, 1024 bytes, 3 allocs\n")
	want := []initCost{{"runtime", 0.037, 16}, {"a/b", 0, 1024}}
	if err != nil || !slices.Equal(costs, want) {
		t.Errorf("got %v %v, want %v", costs, err, want)
	}
	if _, err := parseInitTrace("init nonsense"); err == nil {
		t.Error("no error without a line")
	}
}
