package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// shows is a template of the ports of a service.
func shows(service, mode string) *structs.Template {
	return &structs.Template{DestPath: structs.Ptr("local/ports"), ChangeMode: &mode, Splay: structs.Ptr(time.Duration(0)),
		EmbeddedTmpl: structs.Ptr(`{{ range nomadService "` + service + `" }}{{ .Port }} {{ end }}`)}
}

// offer registers a job whose only purpose is a service at a port.
func (a *agent) offer(service, port string) {
	a.t.Helper()
	j := job("offers-"+service, "sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		g.Services = []*structs.Service{nomadService(service, port)}
	})
	register(a.t, a.Client, j)
	awaitService(a.t, a.Client, service, "port "+port, func(l []*structs.ServiceRegistration) bool {
		return len(l) == 1 && port == strconv.Itoa(l[0].Port)
	})
}

// TestASignalTellsOfAChange signals the same process when a service appears, also when the agent was dead meanwhile, and
// not when nothing has changed.
func TestASignalTellsOfAChange(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	tpl := shows("db", "signal")
	tpl.ChangeSignal = structs.Ptr("SIGHUP")
	c := newCourse(t, a, "hup", func(_ *structs.TaskGroup, task *structs.Task) { task.Templates = []*structs.Template{tpl} })
	c.job.TaskGroups[0].Tasks[0].Config["args"] = []any{"-c", c.script(
		`trap 'say hup$(cat local/ports)' HUP; trap 'exit 0' TERM; say up; while :; do sleep 600 & wait; done`)}
	alloc := c.run("t")
	a.offer("db", "8123")
	c.await("t", "hup8123", 1)
	restarted := func(want int) {
		t.Helper()
		now, _, err := a.Client.Allocations().Info(limited(t), alloc.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := now.TaskStates["t"]; s.Restarts != 0 || len(c.said("t", "up")) != 1 {
			t.Errorf("the task was restarted: %+v", s)
		}
		if n := len(c.said("t", "hup8123")); n != want {
			t.Errorf("it was signalled %d times, want %d", n, want)
		}
	}
	a.Kill()
	a.Start()
	awaitAllocs(t, a.Client, "hup", "the task taken over", func(l []*structs.AllocationListStub) bool {
		return hasEvent(l[0].TaskStates["t"], structs.TaskReattached)
	})
	restarted(1)
	a.Kill()
	file := filepath.Join(a.Dir, "data", "alloc", alloc.ID, "t", "local", "ports")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil { // as if the service had changed meanwhile
		t.Fatal(err)
	}
	a.Start()
	c.await("t", "hup8123", 2)
	restarted(2)
}

// TestAChangedServiceRestartsInTheOrderOfAStop lets a restart by a template go the way of any other.
func TestAChangedServiceRestartsInTheOrderOfAStop(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	c := newCourse(t, a, "again", func(_ *structs.TaskGroup, task *structs.Task) {
		task.Templates = []*structs.Template{shows("db", "restart"), shows("db", "restart"), shows("db", "noop")}
		task.Templates[1].DestPath = structs.Ptr("secrets/vars")
		task.Templates[1].Envvars = structs.Ptr(true)
		task.Templates[1].EmbeddedTmpl = structs.Ptr(`PORT={{ range nomadService "db" }}{{ .Port }}{{ else }}none{{ end }}`)
		task.Templates[2].DestPath = structs.Ptr("../alloc/ports")
		task.ShutdownDelay = time.Second
		task.Services = []*structs.Service{nomadService("again-task", "81")}
	})
	c.job.TaskGroups[0].Tasks[0].Config["args"] = []any{"-c", c.script(
		`trap 'say term; sleep 0.3; say end; exit 0' TERM; say up; say port$PORT; sleep 600 & wait`)}
	alloc := c.run("t")
	awaitInstances(t, a.Client, "again-task", 1)
	c.await("t", "portnone", 1)
	a.offer("db", "8123")
	_, gone := awaitService(t, a.Client, "again-task", "no instances", func(l []*structs.ServiceRegistration) bool { return len(l) == 0 })
	c.await("t", "port8123", 1)
	now := awaitAllocs(t, a.Client, alloc.JobID, "a task that was started again", func(l []*structs.AllocationListStub) bool {
		s := l[0].TaskStates["t"]
		return s.Restarts == 1 && s.Events[len(s.Events)-1].Type == structs.TaskStarted
	})
	s := now[0].TaskStates["t"]
	var kinds []string
	for _, e := range s.Events[slices.IndexFunc(s.Events, func(e *structs.TaskEvent) bool { return e.Type == structs.TaskRestartSignal }):] {
		kinds = append(kinds, e.Type)
	}
	want := []string{structs.TaskRestartSignal, structs.TaskTemplate, structs.TaskWaitingShutdownDelay, structs.TaskKilling,
		structs.TaskTerminated, structs.TaskRestarting, structs.TaskStarted}
	if !slices.Equal(kinds, want) || s.Restarts != 1 {
		t.Errorf("events %q with %d restarts, want %q", kinds, s.Restarts, want)
	}
	if eventAt(s, structs.TaskRestartSignal, "Template with change_mode restart re-rendered") == 0 {
		t.Error("the events do not say why")
	}
	asked := time.Unix(0, eventAt(s, structs.TaskWaitingShutdownDelay, ""))
	c.took("from the delay's begin to the signal", c.at("t", "term").Sub(asked), time.Second)
	if gone.After(c.at("t", "term")) {
		t.Error("the signal came before the service had left")
	}
	shared, err := os.ReadFile(filepath.Join(a.Dir, "data", "alloc", alloc.ID, "alloc", "ports"))
	if err != nil || string(shared) != "8123 " {
		t.Errorf("the shared file is %q, %v", shared, err)
	}
	var st unix.Statfs_t
	secrets := filepath.Join(a.Dir, "data", "alloc", alloc.ID, "t", "secrets")
	if err := unix.Statfs(secrets, &st); err != nil || os.Geteuid() == 0 && st.Type != unix.TMPFS_MAGIC {
		t.Errorf("secrets lie in a file system of type %x, %v", st.Type, err)
	}
}

// TestWrongTemplatesFailTheTask says which template is wrong and where, and runs nothing.
func TestWrongTemplatesFailTheTask(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	for id, tt := range map[string]struct {
		change func(*structs.Template)
		want   string
	}{
		"syntax":   {func(tpl *structs.Template) { *tpl.EmbeddedTmpl = "a\n{{ if }}" }, "template 1 (local/ports): line 2: missing value for if"},
		"variable": {func(tpl *structs.Template) { *tpl.EmbeddedTmpl = "{{ nomadVar `a` }}" }, "variables are not stored by this version's servers"},
		"source":   {func(tpl *structs.Template) { tpl.SourcePath = structs.Ptr("../../../../etc/passwd") }, "leads out of the directory of the allocation"},
		"forever":  {func(tpl *structs.Template) { *tpl.EmbeddedTmpl = "{{ range loop 1000000000000 }}{{ end }}" }, ""},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(a.Dir, id+"-ran")
			register(t, a.Client, job(id, "touch "+ran, func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
				tpl := shows("db", "restart")
				tt.change(tpl)
				task.Templates = []*structs.Template{tpl}
				g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
			}))
			if tt.want == "" { // it is stopped while it is rendered
				awaitAllocs(t, a.Client, id, "preparations", func(l []*structs.AllocationListStub) bool {
					return len(l) == 1 && hasEvent(l[0].TaskStates["t"], structs.TaskSetup)
				})
				a.quick("a stop of a task whose template loops", func() { a.ok("job", "stop", "-detach", id); awaitEnded(t, a.Client, id, 1) })
				return
			}
			s := awaitStatus(t, a.Client, id, structs.AllocClientStatusFailed).TaskStates["t"]
			if eventAt(s, structs.TaskTemplate, tt.want) == 0 || eventAt(s, structs.TaskHookFailed, tt.want) == 0 {
				t.Errorf("no event tells of %q: %+v", tt.want, s.Events)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the task was run")
			}
		})
	}
}

// The page about templates is true.
func TestThePageAboutTemplatesIsTrue(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	newShell(t, a).walk("../docs/templates.md")
}
