package logs

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The two kinds of output, as the API names them.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Limits of a task's log files when its job names none.
const (
	DefaultMaxFiles = 10
	DefaultMaxBytes = 10 << 20
)

// FIFOPath is where a task writes one kind of output to.
func FIFOPath(dir, task, kind string) string {
	return filepath.Join(dir, "."+task+"."+kind+".fifo")
}

// FileName is the name of the n-th file of one kind of output.
func FileName(task, kind string, n int) string {
	return task + "." + kind + "." + strconv.Itoa(n)
}

// splitFIFO finds directory and base ("web.stdout") of the files that belong to a FIFO.
func splitFIFO(fifo string) (dir, base string, ok bool) {
	dir, name := filepath.Split(fifo)
	base, hasSuffix := strings.CutSuffix(name, ".fifo")
	base, hasPrefix := strings.CutPrefix(base, ".")
	return filepath.Clean(dir), base, hasSuffix && hasPrefix && base != ""
}

// fileIndex gives n of "<base>.n".
func fileIndex(name, base string) (int, bool) {
	num, ok := strings.CutPrefix(name, base+".")
	if !ok || num == "" || (len(num) > 1 && num[0] == '0') {
		return 0, false
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < 0 || num[0] == '+' {
		return 0, false
	}
	return n, true
}

func indexName(base string, n int) string { return base + "." + strconv.Itoa(n) }

func sortLogFiles(files []logFile) {
	slices.SortFunc(files, func(a, b logFile) int { return a.index - b.index })
}
