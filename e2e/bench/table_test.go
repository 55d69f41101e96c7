package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// measured collects the values of each figure over all runs.
var measured = map[string][]float64{}

// withDisk is how many times the goal of a figure may be exceeded where everything is synced to disk.
const withDisk = 1.5

type figure struct {
	key, name   string
	unit        string
	established float64 // 0: not known
	goal        float64 // an upper limit; 0: none
	dev         string  // the same figure of the dev agent
}

var figures = []figure{
	{"start/dev", "start of a dev agent until its node is ready", "ms", 2100, 300, ""},
	{"first/dev", "register -> first raw_exec task running", "ms", 1060, 50, ""},
	{"run/dev", "register -> 300 raw_exec tasks running on one node", "ms", 24000, 1500, ""},
	{"task/dev", "memory beside the tasks, each of 300 (PSS)", "MiB", 28, 1, ""},
	{"stop/dev", "stop of 300 tasks", "ms", 3200, 500, ""},
	{"idle/dev", "idle dev agent (PSS)", "MiB", 92, 40, ""},
	{"output", "job run -output of a jobspec of 100 lines, whole process", "ms", 0, 60, ""},
	{"binary", "stripped binary", "MiB", 105, 40, ""},
	{"start/disk", "data_dir: start until the node is ready", "ms", 0, 300 * withDisk, "start/dev"},
	{"first/disk", "data_dir: register -> first task running", "ms", 0, 50 * withDisk, "first/dev"},
	{"run/disk", "data_dir: register -> 300 tasks running", "ms", 0, 1500 * withDisk, "run/dev"},
	{"stop/disk", "data_dir: stop of 300 tasks", "ms", 0, 500 * withDisk, "stop/dev"},
	{"task/disk", "data_dir: memory beside the tasks, each of 300", "MiB", 0, 1, "task/dev"},
	{"idle/disk", "data_dir: idle agent (PSS)", "MiB", 0, 40, "idle/dev"},
	{"checks", "data_dir: 500 allocations on one node with an HTTP check each, every 10 s, in % of a core", "%", 0, 3, ""},
	{"checks/mem", "data_dir: memory of the agent with these (PSS)", "MiB", 0, 150, ""},
	{"nodes", "data_dir: 1,000 simulated nodes ready", "ms", 0, 0, ""},
	{"server", "data_dir: memory of the server for each of them (PSS)", "KiB", 0, 0, ""},
	{"allocs", "data_dir: register -> 5,000 allocations running on them", "ms", 0, 0, ""},
	{"allocsstop", "data_dir: stop of these", "ms", 0, 0, ""},
	{"place/exist", "data_dir: 1,000 simulated nodes, a job of 5,000 -> all allocations exist", "s", 7.3, 0.3, ""},
	{"place/running", "data_dir: the same -> all reported running", "s", 11.4, 0.8, ""},
	{"place/cpu", "data_dir: processor time of the server for that", "s", 11.5, 0, ""},
	{"place/memory", "data_dir: memory of the server after (PSS)", "MiB", 790, 200, ""},
	{"spread/exist", "data_dir: the same job with a spread over racks -> all allocations exist", "s", 0, 0.4, ""},
	{"spread/running", "data_dir: the same -> all reported running", "s", 0, 1, ""},
	{"spread/cpu", "data_dir: processor time of the server for that", "s", 0, 0, ""},
	{"spread/memory", "data_dir: memory of the server after (PSS)", "MiB", 0, 200, ""},
	{"batch/exist", "data_dir: 5,000 nodes, a batch job of 20,000 -> all allocations exist", "s", 47, 1, ""},
	{"batch/running", "data_dir: the same -> all reported running", "s", 89, 3, ""},
	{"batch/cpu", "data_dir: processor time of the server for that", "s", 65, 0, ""},
	{"batch/memory", "data_dir: memory of the server after (PSS)", "MiB", 3100, 600, ""},
	{"large/rate", "data_dir: 5,000 nodes, 1,000 jobs of 20 (2,800 MHz, 6,000 MB): allocations a second, 5,000 wanted", "1/s", 0, 0, ""},
	{"large/first", "data_dir: until the first tenth of them runs", "s", 0, 0, ""},
	{"large/last", "data_dir: for the last tenth", "s", 0, 0, ""},
	{"large/cpu", "data_dir: processor time of the server for all", "s", 0, 0, ""},
	{"large/memory", "data_dir: memory of the server after (PSS)", "MiB", 0, 0, ""},
	{"small/rate", "data_dir: the same with 100 MHz, 100 MB: allocations a second", "1/s", 0, 0, ""},
	{"small/first", "data_dir: until the first tenth of them runs", "s", 0, 0, ""},
	{"small/last", "data_dir: for the last tenth", "s", 0, 0, ""},
	{"small/cpu", "data_dir: processor time of the server for all", "s", 0, 0, ""},
	{"small/memory", "data_dir: memory of the server after (PSS)", "MiB", 0, 0, ""},
	{"idle/cpu", "data_dir: 1,000 idle simulated nodes, share of a processor", "%", 6, 2, ""},
	{"idle/nodes", "data_dir: memory of the server with them (PSS)", "MiB", 314, 100, ""},
	{"cut/dev", "300 tasks in a shutdown delay of 60 s, stop with -no-shutdown-delay -> last one signalled", "ms", 0, 250, ""},
	{"cut/disk", "data_dir: the same", "ms", 0, 250, "cut/dev"},
	{"return", "data_dir: start of a lost node's agent -> its 300 allocations reconciled", "ms", 0, 1000, ""},
	{"lost", "data_dir: 5,000 nodes fall silent -> all conditions of their 100,000 allocations set", "s", 0, 10, ""},
	{"lost/cpu", "data_dir: processor time of the server for that", "s", 0, 10, ""},
	{"lost/entries", "data_dir: raft entries for node states for that", "", 0, 50, ""},
	{"lost/memory", "data_dir: memory of the server before (PSS)", "MiB", 0, 0, ""},
	{"lost/peak", "data_dir: memory of the server after (PSS)", "MiB", 0, 0, ""},
	{"blocked/few", "data_dir: evaluations for a node with room for 10 of 3,000 blocked jobs", "", 0, 30, ""},
	{"blocked/time", "data_dir: a node with room for all comes -> these jobs run", "s", 0, 6, ""},
	{"blocked/cpu", "data_dir: processor time of the server for that", "s", 0, 0, ""},
	{"blocked/all", "data_dir: evaluations for that", "", 0, 0, ""},
	{"next/dev", "register -> one more task running", "ms", 0, 0, ""},
	{"next/disk", "data_dir: register -> one more task running", "ms", 0, 0, "next/dev"},
	{"runcpu/dev", "processor time to run 300 tasks", "ms", 0, 0, ""},
	{"runcpu/disk", "data_dir: processor time to run 300 tasks", "ms", 0, 0, "runcpu/dev"},
	{"stopcpu/dev", "processor time to stop 300 tasks", "ms", 0, 0, ""},
	{"stopcpu/disk", "data_dir: processor time to stop 300 tasks", "ms", 0, 0, "stopcpu/dev"},
}

// table shows the medians beside the goals; it is empty when nothing was measured.
func table(measured map[string][]float64) string {
	var out strings.Builder
	for _, f := range figures {
		values := measured[f.key]
		if len(values) == 0 {
			continue
		}
		got := median(values)
		verdict := ""
		switch {
		case f.goal == 0:
		case got <= f.goal:
			verdict = "reached"
		default:
			verdict = fmt.Sprintf("missed: %.2f times the goal", got/f.goal)
		}
		if dev := median(measured[f.dev]); dev > 0 {
			verdict = strings.TrimPrefix(fmt.Sprintf("%s, %.2f times dev", verdict, got/dev), ", ")
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %.4g | %.4g - %.4g | %s | %s |\n", f.name, orDash(f.established),
			orDash(f.goal), got, slices.Min(values), slices.Max(values), f.unit, verdict)
	}
	if out.Len() == 0 {
		return ""
	}
	return "| figure | established | goal | median | range | unit | |\n|---|--:|--:|--:|--:|---|---|\n" + out.String()
}

func orDash(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%g", v)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

func TestTable(t *testing.T) {
	if got := table(nil); got != "" {
		t.Errorf("table of nothing: %q", got)
	}
	got := table(map[string][]float64{"start/dev": {100, 500, 200}, "start/disk": {900, 300}, "next/dev": {3}})
	for _, line := range []string{
		"| start of a dev agent until its node is ready | 2100 | 300 | 200 | 100 - 500 | ms | reached |",
		"| data_dir: start until the node is ready | - | 450 | 600 | 300 - 900 | ms | missed: 1.33 times the goal, 3.00 times dev |",
		"| register -> one more task running | - | - | 3 | 3 - 3 | ms |  |",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}
