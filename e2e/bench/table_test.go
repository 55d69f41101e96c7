package bench

import (
	"fmt"
	"slices"
	"strings"
)

// measured collects the values of each figure over all runs.
var measured = map[string][]float64{}

// figures are the rows of the table; goals are upper limits. With data_dir the goals are 1.5 times those without, where
// that is measured.
var figures = []struct {
	key, name   string
	established string
	goal        float64
	unit        string
	within      string // another figure: the goal is 1.5 times what that one measured
}{
	{"start/dev", "start of a dev agent until its node is ready", "2100", 300, "ms", ""},
	{"first/dev", "register -> first raw_exec task running", "1060", 50, "ms", ""},
	{"next/dev", "register -> a further raw_exec task running", "", 50, "ms", ""},
	{"run/dev", "register -> 300 raw_exec tasks running", "24000", 1500, "ms", ""},
	{"task/dev", "memory beside each of 300 tasks (PSS)", "28", 1, "MiB", ""},
	{"stop/dev", "stop of 300 tasks", "3200", 500, "ms", ""},
	{"idle/dev", "idle dev agent (PSS)", "92", 40, "MiB", ""},
	{"binary", "stripped binary", "105", 40, "MiB", ""},
	{"start/disk", "with data_dir: start", "", 0, "ms", "start/dev"},
	{"first/disk", "with data_dir: first task running", "", 0, "ms", "first/dev"},
	{"next/disk", "with data_dir: a further task running", "", 0, "ms", "next/dev"},
	{"run/disk", "with data_dir: 300 tasks running", "", 0, "ms", "run/dev"},
	{"task/disk", "with data_dir: memory beside each task", "", 1, "MiB", ""},
	{"stop/disk", "with data_dir: stop of 300 tasks", "", 0, "ms", "stop/dev"},
	{"idle/disk", "with data_dir: idle agent (PSS)", "", 40, "MiB", ""},
}

// table shows the medians beside the goals; it is empty when nothing was measured.
func table() string {
	var out strings.Builder
	for _, f := range figures {
		values := measured[f.key]
		if len(values) == 0 {
			continue
		}
		goal := f.goal
		if f.within != "" {
			goal = 1.5 * median(measured[f.within])
		}
		verdict := "reached"
		switch got := median(values); {
		case goal == 0:
			verdict = "-"
		case got > goal:
			verdict = fmt.Sprintf("missed %.2f times", got/goal)
		}
		fmt.Fprintf(&out, "| %-47s | %11s | %7.4g | %8.4g | %8.4g - %8.4g | %-3s | %s\n",
			f.name, f.established, goal, median(values), slices.Min(values), slices.Max(values), f.unit, verdict)
	}
	if out.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("| %-47s | %11s | %7s | %8s | %19s | %-3s |\n", "figure", "established", "goal", "median", "min - max", "") +
		out.String()
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
