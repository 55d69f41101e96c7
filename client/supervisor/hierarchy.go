package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is one cgroup v1 hierarchy that is mounted.
type hierarchy struct {
	mount       string
	root        string   // which of its cgroups is seen at mount
	controllers []string // "cpu", "cpuacct"; "name=systemd" of one without controllers
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// cgroups are the hierarchies that we may write to. The unified one, wherever it is mounted, tells which processes
// belong to a task and kills them all at once; on hybrid hosts it has no controllers, those are in v1 hierarchies. The
// zero value has none.
type cgroups struct {
	unified     string   // where it is mounted
	controllers []string // of the unified hierarchy
	v1          []hierarchy
}

// mountinfoFile is where the kernel says what is mounted.
const mountinfoFile = "/proc/self/mountinfo"

// findCgroups looks for hierarchies. mountinfo is a file in the form of /proc/self/mountinfo, which "" stands for.
func findCgroups(mountinfo string) cgroups {
	if mountinfo == "" {
		mountinfo = mountinfoFile
	}
	data, err := os.ReadFile(mountinfo)
	if err != nil {
		return cgroups{}
	}
	c := parseMountinfo(string(data))
	if unix.Access(c.unified, unix.W_OK) != nil {
		c.unified = ""
	}
	c.v1 = slices.DeleteFunc(c.v1, func(h hierarchy) bool { return unix.Access(h.mount, unix.W_OK) != nil })
	if c.unified != "" {
		have, _ := os.ReadFile(filepath.Join(c.unified, "cgroup.controllers")) // missing: none
		c.controllers = strings.Fields(string(have))
	}
	return c
}

// parseMountinfo picks the hierarchies from lines such as
//
//	35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
//
// One that is mounted in several places counts once, where it was mounted first.
func parseMountinfo(text string) cgroups {
	var c cgroups
	for line := range strings.Lines(text) {
		pre, post, ok := strings.Cut(strings.TrimSpace(line), " - ")
		at, what := strings.Fields(pre), strings.Fields(post)
		if !ok || len(at) < 5 || len(what) < 1 {
			continue
		}
		root, mount := unescape(at[3]), unescape(at[4])
		switch what[0] {
		case "cgroup2":
			if c.unified == "" {
				c.unified = mount
			}
		case "cgroup":
			if h := (hierarchy{mount: mount, root: root, controllers: v1Controllers(what[len(what)-1])}); len(h.controllers) > 0 &&
				!slices.ContainsFunc(c.v1, func(o hierarchy) bool { return o.has(h.controllers[0]) }) {
				c.v1 = append(c.v1, h)
			}
		}
	}
	return c
}

// v1Controllers are those among the options of a hierarchy's file system.
func v1Controllers(options string) []string {
	known := []string{"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "misc", "net_cls", "net_prio",
		"perf_event", "pids", "rdma"}
	var out []string
	for o := range strings.SplitSeq(options, ",") {
		if slices.Contains(known, o) || strings.HasPrefix(o, "name=") {
			out = append(out, o)
		}
	}
	return out
}

// unescape undoes what the kernel does with blanks and the like in a path.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

func (c cgroups) usable() bool { return c.unified != "" || len(c.v1) > 0 }

// find gives the v1 hierarchy of a controller.
func (c cgroups) find(controller string) (hierarchy, bool) {
	i := slices.IndexFunc(c.v1, func(h hierarchy) bool { return h.has(controller) })
	if i < 0 {
		return hierarchy{}, false
	}
	return c.v1[i], true
}

// mounts are those of all hierarchies, the unified one first.
func (c cgroups) mounts() []string {
	var out []string
	if c.unified != "" {
		out = append(out, c.unified)
	}
	for _, h := range c.v1 {
		out = append(out, h.mount)
	}
	return out
}

// taskPath is where the cgroup of a task lies in each hierarchy.
func taskPath(parent, name string) string {
	return filepath.Join(filepath.Clean("/"+parent), name+".scope")
}

// same lists the cgroups of this path that there are in all hierarchies: those of one task have the same everywhere.
func (c cgroups) same(rel string) []string {
	var out []string
	for _, m := range c.mounts() {
		if path := filepath.Join(m, rel); exists(path) {
			out = append(out, path)
		}
	}
	return out
}

// relative is the path of a cgroup in its hierarchy; "" when it is in none.
func (c cgroups) relative(path string) string {
	for _, m := range c.mounts() {
		if rel, ok := strings.CutPrefix(path, m+"/"); ok {
			return "/" + rel
		}
	}
	return ""
}

// of lists where a process is, by the text of /proc/PID/cgroup, for the hierarchies that we know: paths by mount.
func (c cgroups) of(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		if part[1] == "" {
			if c.unified != "" {
				out[c.unified] = filepath.Join(c.unified, part[2])
			}
			continue
		}
		first, _, _ := strings.Cut(part[1], ",")
		if h, ok := c.find(first); ok {
			rel, err := filepath.Rel(h.root, part[2])
			if err == nil && !strings.HasPrefix(rel, "..") {
				out[h.mount] = filepath.Join(h.mount, rel)
			}
		}
	}
	return out
}
