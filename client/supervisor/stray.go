package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/codec"
)

// badSuffix is added to the name of a damaged record, which is kept for people.
const badSuffix = ".bad"

// maxSalvage is how much of a damaged record is searched for what can still be read.
const maxSalvage = 64 << 10

// salvage reads what a damaged record still has, value by value: one that cannot be read does not hide those after it.
func salvage(path string) record {
	var out record
	data, err := os.ReadFile(path)
	if err != nil {
		return out
	}
	data = data[:min(len(data), maxSalvage)]
	for i := range data {
		var r record
		if err := codec.NewDecoder(bytes.NewReader(data[i:])).Decode(&r); err != nil {
			continue
		}
		// The name of the file tells whether the id is the one that it was made for.
		if r.Task != nil && recordName(r.Task.ID) == filepath.Base(path) {
			out.Task = r.Task
		}
		if r.Started != nil && r.Started.PID > 1 {
			out.Started = r.Started
		}
		if r.Exit != nil && !r.Exit.At.IsZero() {
			out.Exit = r.Exit
		}
	}
	return out
}

// mend accounts for a task whose record is damaged: it is adopted if the record still says which one it is, else what is
// left of its processes is killed. The damaged file stays, for people.
func (s *server) mend(path string, why error) {
	rec := salvage(path)
	bad := path + badSuffix
	if err := os.Rename(path, bad); err != nil {
		s.logger.Error("cannot put damaged record aside", "record", path, "error", err)
	}
	if rec.Task != nil {
		s.logger.Error("task record is damaged, going on with what can be read of it", "record", bad, "task", rec.Task.ID,
			"started", rec.Started != nil, "ended", rec.Exit != nil, "error", why)
		for _, part := range []record{{Task: rec.Task}, {Started: rec.Started}, {Exit: rec.Exit}} {
			if part != (record{}) {
				if err := appendRecord(path, part); err != nil {
					s.logger.Error("cannot write task record", "task", rec.Task.ID, "error", err)
				}
			}
		}
		s.adopt(path, rec)
		return
	}
	if rec.Started == nil {
		s.logger.Error("task record is damaged and names no process: one may run that nobody accounts for", "record", bad, "error", why)
		return
	}
	t := TaskInfo{PID: rec.Started.PID, StartTick: rec.Started.StartTick, BootID: s.bootID}
	pids, err := t.endStray(s.cgroups, rec.Started.At)
	s.logger.Error("task record is damaged, its process was killed", "record", bad, "pid", t.PID, "cgroup", t.Cgroup, "killed", pids,
		"error", errors.Join(why, err))
}

// Damaged lists the damaged records that supervisors have put aside; supervisor.log says what became of their tasks.
func (c *Client) Damaged() []string {
	found, _ := filepath.Glob(filepath.Join(c.cfg.Dir, dirPrefix+"*", "*"+recordSuffix+badSuffix)) // the pattern is a good one
	return found
}

// EndStray ends what runs of a task which no supervisor knows, since its record was lost or damaged: its process, by
// number and start time, its cgroup, and what carries the marks of its environment. It gives the processes found.
func (c *Client) EndStray(t TaskInfo) (pids []int, err error) {
	hierarchies := findCgroups(c.cfg.Mountinfo)
	if c.cfg.NoCgroups {
		hierarchies = cgroups{}
	}
	if base, err := filepath.Abs(c.cfg.Dir); err == nil && t.Cgroup == "" {
		t.Cgroups = append(t.Cgroups, hierarchies.conventional(base, t.ID)...)
	}
	if alloc, rest, ok := strings.Cut(t.ID, "/"); ok && len(t.Marks) == 0 {
		if i := strings.LastIndexByte(rest, '/'); i > 0 {
			t.Marks = []string{"NOMAD_ALLOC_ID=" + alloc, "NOMAD_TASK_NAME=" + rest[:i]}
		}
	}
	pids, err = t.endStray(hierarchies, t.StartedAt)
	if len(pids) > 0 || err != nil {
		c.logger.Error("a task that no supervisor knows was running and is killed", "task", t.ID, "pid", t.PID, "cgroup", t.Cgroup,
			"killed", pids, "error", err)
	}
	return pids, err
}

// conventional lists the cgroups that there are of a task, whose node has no parent of its own for them.
func (c cgroups) conventional(base, id string) []string {
	return c.same(taskPath(driver.DefaultCgroupParent, recordName(base + "\x00" + id)[:32]))
}

// endStray kills what is left of a task. startedAt, unless zero, must be when its process started by the kernel's word
// too: numbers begin anew with each life of the machine.
func (t *TaskInfo) endStray(c cgroups, startedAt time.Time) (pids []int, err error) {
	main := tree{marks: t.Marks}
	p, readErr := readProcess(t.PID)
	same := readErr == nil && t.PID > 1 && p.startTick == t.StartTick && t.BootID == bootID() && startedNear(t.StartTick, startedAt)
	all := slices.Clone(t.Cgroups)
	if same {
		main.leader, main.tick = t.PID, t.StartTick
		all = append(all, c.scopesOf(t.PID)...)
		if len(t.Marks) == 0 {
			main.marks = marksOfProcess(t.PID)
		}
	}
	if t.Cgroup != "" {
		all = append(all, t.Cgroup)
		if rel := c.relative(t.Cgroup); rel != "" {
			all = append(all, c.same(rel)...)
		}
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(path string) bool { return !exists(path) })
	pids = main.pids()
	for _, path := range all {
		pids = append(pids, cgroupPIDs(path)...)
	}
	if len(all) > 0 {
		err = clearCgroups(first(all), all)
	}
	slices.Sort(pids)
	return slices.Compact(pids), errors.Join(err, main.kill())
}

// first picks the cgroup whose processes are killed most surely: at once, or frozen.
func first(paths []string) string {
	for _, file := range []string{"cgroup.kill", frozenFile, "pids.max"} {
		if i := slices.IndexFunc(paths, func(p string) bool { return exists(filepath.Join(p, file)) }); i >= 0 {
			return paths[i]
		}
	}
	return paths[0]
}

// startedNear says whether a process of this start time started at about that moment.
func startedNear(tick uint64, at time.Time) bool {
	if at.IsZero() {
		return true
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return false
	}
	age := time.Duration(now.Nano()) - time.Duration(tick)*(time.Second/100)
	return (time.Since(at) - age).Abs() < time.Minute
}

// scopesOf lists the cgroups of a task's process that were made for a task.
func (c cgroups) scopesOf(pid int) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return nil
	}
	var out []string
	for _, path := range c.of(string(data)) {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".scope"); ok && len(name) == 32 {
			out = append(out, path)
		}
	}
	return out
}

// marksOfProcess reads the marks of a task from the environment of its process.
func marksOfProcess(pid int) []string {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	return marksOf(strings.Split(string(env), "\x00"))
}
