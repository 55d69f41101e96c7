package supervisor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// place is one cgroup that a task's process is put into.
type place struct {
	dir         string
	own         bool // made for the task, limited and removed again; else the job names it
	controllers []string
}

func (p place) has(controller string) bool { return slices.Contains(p.controllers, controller) }

// placement is where a task's process is put: at most one cgroup in each hierarchy.
type placement struct {
	unified place // its dir is "" when the task stays where the supervisor is
	v1      []place
	track   string // the cgroup by which all of its processes are found, one of its own; "" for none
}

// own lists the cgroups that are made for the task.
func (p placement) own() []string {
	var out []string
	for _, pl := range p.all() {
		if pl.own {
			out = append(out, pl.dir)
		}
	}
	return out
}

func (p placement) all() []place {
	if p.unified.dir == "" {
		return p.v1
	}
	return append([]place{p.unified}, p.v1...)
}

// place decides where a task goes. rel is the path of its own cgroups in each hierarchy.
func (c cgroups) place(spec *StartSpec, rel string) (placement, error) {
	var p placement
	if spec.NoCgroups {
		if len(spec.JoinV1) > 0 || spec.JoinUnified != "" {
			return p, fmt.Errorf("the job names cgroups, and there are to be none")
		}
		return p, nil
	}
	if err := c.join(spec, &p); err != nil {
		return p, err
	}
	if c.unified != "" && p.unified.dir == "" {
		p.unified = place{dir: filepath.Join(c.unified, rel), own: true, controllers: c.controllers}
		p.track = p.unified.dir
	}
	free := slices.DeleteFunc(slices.Clone(c.v1), func(h hierarchy) bool {
		return slices.ContainsFunc(p.v1, func(pl place) bool { return pl.has(h.controllers[0]) })
	})
	take := func(controller string) string {
		i := slices.IndexFunc(free, func(h hierarchy) bool { return h.has(controller) })
		if i < 0 {
			return ""
		}
		dir := filepath.Join(free[i].mount, rel)
		if !slices.ContainsFunc(p.v1, func(pl place) bool { return pl.dir == dir }) {
			p.v1 = append(p.v1, place{dir: dir, own: true, controllers: free[i].controllers})
		}
		return dir
	}
	if p.track == "" {
		// A frozen cgroup forks no more, one without a free process number neither; of the others those that a task has
		// least reason to touch come first.
		for _, controller := range []string{"freezer", "pids", "name=systemd", "devices", "cpuacct", "cpu", "memory"} {
			if p.track = take(controller); p.track != "" {
				break
			}
		}
	}
	if l := spec.Limits; l != nil {
		take("memory") // it also tells the use, and who was killed for want of it
		if l.CPUShares > 0 {
			take("cpu")
		}
		if len(l.Cores) > 0 {
			take("cpuset")
		}
		if !p.unified.own { // whose cpu.stat tells the same, controller or not
			take("cpuacct")
		}
	}
	return p, nil
}

// join adds the cgroups that the job names. They have to exist.
func (c cgroups) join(spec *StartSpec, p *placement) error {
	for controller, path := range spec.JoinV1 {
		h, ok := c.find(controller)
		if !ok {
			return fmt.Errorf("join cgroup %s: there is no v1 hierarchy with controller %q", path, controller)
		}
		dir := inMount(h.mount, path)
		if !exists(filepath.Join(dir, "cgroup.procs")) {
			return fmt.Errorf("join cgroup %s of controller %q: it does not exist", path, controller)
		}
		if i := slices.IndexFunc(p.v1, func(pl place) bool { return pl.has(controller) }); i >= 0 && p.v1[i].dir != dir {
			return fmt.Errorf("join cgroup %s: %s is in the same hierarchy", path, p.v1[i].dir)
		} else if i < 0 {
			p.v1 = append(p.v1, place{dir: dir, controllers: h.controllers})
		}
	}
	if path := spec.JoinUnified; path != "" {
		if c.unified == "" {
			return fmt.Errorf("join cgroup %s: there is no unified hierarchy", path)
		}
		dir := inMount(c.unified, path)
		if !exists(filepath.Join(dir, "cgroup.procs")) {
			return fmt.Errorf("join cgroup %s: it does not exist", path)
		}
		p.unified = place{dir: dir}
	}
	return nil
}

// inMount makes a path that is absolute, or relative to a hierarchy, one of the file system. None leads out of it.
func inMount(mount, path string) string {
	path = filepath.Clean("/" + path)
	if path == mount || strings.HasPrefix(path, mount+"/") {
		return path
	}
	return filepath.Join(mount, path)
}

// prepareCgroups makes the cgroups of a task that starts, sets its limits and says in attr, and by what it gives, how the
// process comes into them.
func (s *server) prepareCgroups(t *task, spec *StartSpec, attr *syscall.ProcAttr) (m membership, err error) {
	if dir := t.places.unified.dir; dir != "" {
		fd, err := s.openUnified(t)
		if err == nil {
			attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
		} else if spec.JoinUnified != "" {
			return m, err
		} else {
			s.dropUnified(t, err)
		}
	}
	for _, pl := range slices.Clone(t.places.v1) {
		if err := s.addV1(pl, &m); err != nil {
			if !pl.own || (spec.Limits != nil && spec.Limits.Required) {
				return m, err
			}
			s.dropV1(t, pl, err)
		}
	}
	if l := spec.Limits; l != nil && (l.Required || len(t.places.all()) > 0) {
		if err := t.places.limit(*l, false); err != nil && l.Required {
			return m, fmt.Errorf("limit task: %w", err)
		} else if err != nil {
			s.logger.Warn("task runs without all of its limits", "task", t.rec.ID, "error", err)
		}
	}
	return m, nil
}

func (s *server) openUnified(t *task) (int, error) {
	pl := t.places.unified
	if pl.own {
		return s.cgroups.open(pl.dir)
	}
	fd, err := unix.Open(pl.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open cgroup %s: %w", pl.dir, err)
	}
	return fd, nil
}

// addV1 makes a cgroup, unless it is one that the job names, and adds it to those the process is made in.
func (s *server) addV1(pl place, m *membership) error {
	h, ok := s.cgroups.find(pl.controllers[0])
	home, known := s.homes[h.mount]
	if !ok || !known {
		return fmt.Errorf("use cgroup %s: the way back out of it is not known", pl.dir)
	}
	if pl.own {
		if err := createV1(pl, h.mount); err != nil {
			return err
		}
	}
	fd, err := openTasks(pl.dir)
	if err != nil {
		return err
	}
	m.enter, m.home = append(m.enter, fd), append(m.home, home)
	return nil
}

// dropUnified goes on without a cgroup of the unified hierarchy, and says so in the record too.
func (s *server) dropUnified(t *task, why error) {
	pl := t.places.unified
	t.places.unified = place{}
	s.drop(t, pl, why)
}

func (s *server) dropV1(t *task, pl place, why error) {
	t.places.v1 = slices.DeleteFunc(t.places.v1, func(o place) bool { return o.dir == pl.dir })
	s.drop(t, pl, why)
}

func (s *server) drop(t *task, pl place, why error) {
	s.logger.Warn("task runs without a cgroup", "task", t.rec.ID, "cgroup", pl.dir, "error", why)
	if pl.own {
		if err := removeCgroup(pl.dir); err != nil { // nobody was ever in it
			s.logger.Error("the cgroup that a task does not use stays", "task", t.rec.ID, "error", err)
		}
	}
	if t.places.track == pl.dir {
		t.places.track = ""
	}
	s.mu.Lock()
	t.rec.Cgroup, t.rec.Cgroups = t.places.track, t.places.own()
	s.mu.Unlock()
	if err := appendRecord(t.path, record{Task: &t.rec}); err != nil {
		s.logger.Error("cannot write task record", "task", t.rec.ID, "error", err)
	}
}
