package template

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// fakeServers have services whose only instance has the port that set gave.
type fakeServers struct {
	mu      sync.Mutex
	ports   map[string]int
	index   uint64
	changed chan struct{}
	silent  bool // they never answer
}

func newFakeServers() *fakeServers {
	return &fakeServers{ports: map[string]int{}, index: 1, changed: make(chan struct{})}
}

func (f *fakeServers) set(name string, port int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ports[name] = port
	f.index++
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeServers) Fetch(ctx context.Context, _ string, q Query, index uint64) (Answer, uint64, error) {
	if q.Kind == Var {
		return Answer{}, 0, structs.Errorf(structs.CodeNotImplemented, "variables are not stored")
	}
	for {
		f.mu.Lock()
		answer, now, changed := Answer{Services: []*dep.NomadService{{Port: f.ports[q.Name]}}}, f.index, f.changed
		silent := f.silent
		f.mu.Unlock()
		if now > index && !silent {
			return answer, now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Answer{}, 0, ctx.Err()
		}
	}
}

// fakeTask writes down what it is asked for.
type fakeTask struct {
	mu    sync.Mutex
	begin time.Time
	asked []string
	ends  bool // it is to end, and is not started anew
}

func (f *fakeTask) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Since(f.begin).String()+" "+fmt.Sprintf(format, args...))
}

func (f *fakeTask) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = nil
	return out
}

func (f *fakeTask) Restart(reason string) error {
	if f.ends {
		return taskrunner.ErrNotRunning
	}
	f.note("restart")
	return nil
}
func (f *fakeTask) Signal(_ context.Context, signal, _ string) error {
	f.note("signal %s", signal)
	return nil
}
func (f *fakeTask) Exec(_ context.Context, command []string) (int, string, error) {
	f.note("exec %s", strings.Join(command, " "))
	return 1, "no", nil
}
func (f *fakeTask) Fail(reason string) { f.note("fail %s", reason) }
func (f *fakeTask) Emit(events ...*structs.TaskEvent) {
	for _, e := range events {
		if strings.HasPrefix(e.DisplayMessage, "Missing") || f.ends {
			f.note("%s", e.DisplayMessage)
		}
	}
}

// bench is a task with its templates, in a directory of its own.
type bench struct {
	t       testing.TB
	servers *fakeServers
	task    *fakeTask
	cfg     *Config
	hook    *Hook
	req     *hook.TaskRequest
	kill    context.CancelFunc // of the agent
	wait    sync.WaitGroup
}

func newBench(t testing.TB, templates ...*structs.Template) *bench {
	b := &bench{t: t, servers: newFakeServers(), task: &fakeTask{begin: time.Now()}}
	task := &structs.Task{Name: "web", Templates: templates, RestartPolicy: &structs.RestartPolicy{RenderTemplates: structs.Ptr(false)}}
	for i, tpl := range templates {
		if tpl.DestPath == nil {
			tpl.DestPath = structs.Ptr(fmt.Sprintf("local/%d", i))
		}
		if tpl.Perms == nil {
			tpl.Perms = structs.Ptr("0644")
		}
	}
	dir, err := os.MkdirTemp("", "template-test-")
	if err != nil {
		t.Fatal(err)
	}
	b.cfg = &Config{Logger: hclog.NewNullLogger(), Source: b.servers, Random: func() float64 { return 0.5 }, Go: b.wait.Go,
		Render: func(_ context.Context, req *Request) (*Response, error) { return Execute(req), nil }}
	b.cfg.Denylist = DefaultDenylist()
	b.req = &hook.TaskRequest{Alloc: &structs.Allocation{ID: "a", Namespace: "default"}, Task: task, Attempt: 1, Control: b.task}
	d := allocdir.New(dir, "a")
	if err := os.MkdirAll(d.LocalDir("web"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.agent(d)
	return b
}

// agent begins anew, as after a kill of the agent.
func (b *bench) agent(d *allocdir.Dir) {
	if b.kill != nil {
		b.kill()
		b.wait.Wait()
	}
	b.cfg.Life, b.kill = context.WithCancel(context.Background())
	b.hook = &Hook{Config: b.cfg, Dir: d, Env: func(*hook.TaskRequest) *taskenv.Env {
		return taskenv.Build(taskenv.Input{HookEnv: map[string]string{"WHO": "me"}})
	}}
}

func (b *bench) end() {
	b.kill()
	b.wait.Wait()
	_ = os.RemoveAll(filepath.Dir(b.hook.Dir.Path))
}

func (b *bench) start() map[string]string {
	b.t.Helper()
	var resp hook.TaskResponse
	if err := b.hook.Prestart(context.Background(), b.req, &resp); err != nil {
		b.t.Fatal(err)
	}
	if err := b.hook.Poststart(context.Background(), b.req, &resp); err != nil {
		b.t.Fatal(err)
	}
	return resp.Env
}

func (b *bench) has(name, want string) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.hook.Dir.TaskDir("web"), name))
	if err != nil || string(data) != want {
		b.t.Errorf("%s is %q, %v; want %q", name, data, err, want)
	}
}

func (b *bench) asks(want ...string) {
	b.t.Helper()
	if got := b.task.list(); !slices.Equal(got, want) {
		b.t.Errorf("the task was asked for %q, want %q", got, want)
	}
}

func port(service, mode, signal string, splay time.Duration) *structs.Template {
	return &structs.Template{EmbeddedTmpl: structs.Ptr(`{{ range nomadService "` + service + `" }}{{ .Port }}{{ end }}`),
		ChangeMode: &mode, ChangeSignal: &signal, Splay: &splay}
}

func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// goes lets time go by.
func goes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWaitAndSplay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tpl := port("db", "restart", "", 10*time.Second)
		tpl.Wait = &structs.WaitConfig{Min: structs.Ptr(5 * time.Second), Max: structs.Ptr(12 * time.Second)}
		b := newBench(t, tpl)
		defer b.end()
		b.servers.set("db", 1)
		b.start()
		b.has("local/0", "1") // the start waits for nothing but answers
		b.servers.set("db", 2)
		goes(4 * time.Second)
		b.servers.set("db", 3)
		goes(4 * time.Second)
		b.has("local/0", "1")
		b.servers.set("db", 4)
		goes(4*time.Second - time.Millisecond)
		b.has("local/0", "1")
		goes(time.Millisecond) // 12 s after the first change, though the last is only 4 s ago
		b.has("local/0", "4")
		b.asks()
		goes(time.Minute)
		b.asks("17s restart")
		b.servers.set("db", 4) // another index, the same content
		goes(time.Minute)
		b.asks()
	})
}

// A task that waits for its shutdown delay is not started anew, and its events do not say so.
func TestNoRestartIsToldOfATaskThatEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t, port("db", "restart", "", 0))
		defer b.end()
		b.start()
		b.task.ends = true
		b.servers.set("db", 1)
		goes(time.Minute)
		b.has("local/0", "1") // it runs on for a while
		b.asks()
	})
}

func TestManyTemplatesAskOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t, port("db", "restart", "", 2*time.Second), port("db", "restart", "", 6*time.Second), port("db", "signal", "SIGHUP", 0),
			port("mq", "signal", "SIGHUP", 0), port("mq", "signal", "SIGUSR1", 0), port("mq", "noop", "", 0))
		defer b.end()
		b.start()
		b.servers.set("mq", 1)
		goes(time.Second)
		b.asks("0s signal SIGHUP", "0s signal SIGUSR1")
		b.servers.set("db", 1)
		goes(time.Minute)
		b.asks("2s restart")
	})
}

func TestNothingIsLostWhileTheTaskStarts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t, port("db", "signal", "SIGHUP", 0))
		defer b.end()
		var resp hook.TaskResponse
		if err := b.hook.Prestart(t.Context(), b.req, &resp); err != nil {
			t.Fatal(err)
		}
		b.servers.set("db", 1)
		goes(time.Second)
		b.asks()
		_ = b.hook.Poststart(t.Context(), b.req, &resp)
		goes(time.Second)
		b.asks("1s signal SIGHUP")
		_ = b.hook.Exited(t.Context(), b.req, &resp)
		b.servers.set("db", 2)
		goes(time.Second)
		b.start() // it sees the file as it is
		goes(time.Second)
		b.has("local/0", "2")
		b.asks()
	})
}

func TestAfterAKillOfTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		once := port("db", "restart", "", 0)
		once.Once = structs.Ptr(true)
		b := newBench(t, port("db", "restart", "", 0), once)
		defer b.end()
		b.start()
		b.servers.set("db", 1)
		goes(time.Second)
		b.asks("0s restart")
		b.has("local/1", "0")
		reattach := func() {
			b.agent(b.hook.Dir)
			if err := b.hook.Reattach(t.Context(), b.req, &hook.TaskResponse{}); err != nil {
				t.Fatal(err)
			}
			goes(time.Second)
		}
		reattach()
		b.asks() // nothing has changed
		b.kill()
		b.servers.set("db", 2)
		reattach()
		b.asks("2s restart")
		b.has("local/0", "2")
		b.has("local/1", "0")
	})
}

func TestAStopEndsTheWaitForServers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t, port("db", "restart", "", 0))
		defer b.end()
		b.servers.silent = true
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.hook.Prestart(ctx, b.req, &hook.TaskResponse{}) }()
		goes(10 * time.Second)
		b.asks("3s Missing: nomad.service(db)")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if since := time.Since(b.task.begin); since != 10*time.Second {
			t.Errorf("it ended %s after the begin", since)
		}
	})
}

func TestRenderTemplatesOfRestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tpl := port("db", "noop", "", 0)
		tpl.Once = structs.Ptr(true)
		b := newBench(t, tpl)
		defer b.end()
		b.start()
		b.servers.set("db", 1)
		_ = b.hook.Exited(t.Context(), b.req, &hook.TaskResponse{})
		b.start()
		b.has("local/0", "0")
		*b.req.Task.RestartPolicy.RenderTemplates = true
		b.start()
		b.has("local/0", "1")
	})
}

func TestEnvironment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tpl := &structs.Template{EmbeddedTmpl: structs.Ptr("A={{ env `WHO` }}\nB={{ range nomadService `db` }}{{ .Port }}{{ end }}\n"), Envvars: structs.Ptr(true),
			ChangeMode: structs.Ptr("restart")}
		b := newBench(t, tpl)
		defer b.end()
		if env := b.start(); env["A"] != "me" || env["B"] != "0" {
			t.Errorf("environment %v", env)
		}
		b.servers.set("db", 7)
		goes(time.Second)
		b.asks("0s restart")
		if env := b.start(); env["B"] != "7" {
			t.Errorf("environment %v", env)
		}
	})
}

func TestFilesAreFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t, &structs.Template{EmbeddedTmpl: structs.Ptr("{{ file `local/shown` }}"), ChangeMode: structs.Ptr("signal"), ChangeSignal: structs.Ptr("SIGHUP")})
		defer b.end()
		shown := filepath.Join(b.hook.Dir.LocalDir("web"), "shown")
		for i, text := range []string{"a", "bc"} {
			if err := os.WriteFile(shown, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				b.start()
			}
			goes(3 * time.Second)
			b.has("local/0", text)
		}
		b.asks("4s signal SIGHUP")
	})
}

func TestFaultsFailTheTask(t *testing.T) {
	link := func(b *bench) {
		_ = os.Symlink("/etc/passwd", filepath.Join(b.hook.Dir.LocalDir("web"), "0"))
	}
	huge := func(b *bench) {
		_ = os.WriteFile(filepath.Join(b.hook.Dir.LocalDir("web"), "src"), make([]byte, maxFile+1), 0o600)
	}
	text := func(s string) *structs.Template { return &structs.Template{EmbeddedTmpl: &s} }
	for _, tt := range []struct {
		tpl   *structs.Template
		setup func(*bench)
		want  string
	}{
		{text("a\n{{ if }}"), nil, "template 1 (local/0): line 2: missing value for if"},
		{text("{{ nomadVar `a` }}"), nil, "line 1:3: at <nomadVar `a`>: error calling nomadVar: variables are not stored"},
		{text("{{ file `local/none` }}"), nil, `line 1:3: at <file ` + "`local/none`" + `>: error calling file: file "local/none" does not exist`},
		{text("{{ file `/../../../../etc/passwd` }}"), nil, "does not exist"}, // below the task's directory
		{text("{{ file `../../../etc/passwd` }}"), nil, "leads out of the directory of the allocation"},
		{text("x"), link, "there is a link"},
		{&structs.Template{EmbeddedTmpl: structs.Ptr("x"), DestPath: structs.Ptr("../../x")}, nil, "leads out of the directory of the allocation"},
		{&structs.Template{EmbeddedTmpl: structs.Ptr("x"), Perms: structs.Ptr("rwx")}, nil, "perms \"rwx\" are not an octal number"},
		{&structs.Template{SourcePath: structs.Ptr("local/src")}, huge, "above 10485760"},
		{&structs.Template{SourcePath: structs.Ptr("local/none")}, nil, "no such file"},
		{&structs.Template{EmbeddedTmpl: structs.Ptr("A=1\nB"), Envvars: structs.Ptr(true)}, nil, "line 2"},
		{&structs.Template{EmbeddedTmpl: structs.Ptr("x"), ChangeMode: structs.Ptr("signal"), ChangeSignal: structs.Ptr("SIGNO")}, nil, "unknown signal"},
		{&structs.Template{EmbeddedTmpl: structs.Ptr("x"), ChangeMode: structs.Ptr("script")}, nil, "needs a driver that runs commands"},
	} {
		b := newBench(t, tt.tpl)
		if tt.setup != nil {
			tt.setup(b)
		}
		var resp hook.TaskResponse
		err := b.hook.Prestart(t.Context(), b.req, &resp)
		if !errors.Is(err, driver.ErrUnrecoverable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
		if len(resp.Events) != 1 || resp.Events[0].Type != structs.TaskTemplate {
			t.Errorf("events %v", resp.Events)
		}
		b.end()
	}
}

func TestAFaultWhileTheTaskRunsEndsIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tpl := port("db", "restart", "", 0)
		*tpl.EmbeddedTmpl = `{{ range nomadService "db" }}{{ if eq .Port 2 }}{{ parseInt "x" }}{{ end }}{{ end }}`
		b := newBench(t, tpl)
		defer b.end()
		b.start()
		b.servers.set("db", 2)
		goes(time.Second)
		if got := b.task.list(); len(got) != 1 || !strings.Contains(got[0], "fail Template failed: ") || !strings.Contains(got[0], "line 1:") {
			t.Errorf("asked for %q", got)
		}
	})
}

func TestScripts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tpl := port("db", "script", "", 0)
		tpl.ChangeScript = &structs.ChangeScript{Command: structs.Ptr("/bin/x"), Args: []string{"y"}, Timeout: structs.Ptr(time.Second),
			RunOnFirstRender: structs.Ptr(true), FailOnError: structs.Ptr(false)}
		b := newBench(t, tpl)
		defer b.end()
		b.cfg.Script = func(r *hook.TaskRequest) Script {
			return func(ctx context.Context, command string, args []string) (int, string, error) {
				return r.Control.Exec(ctx, append([]string{command}, args...))
			}
		}
		b.start()
		goes(time.Second)
		b.asks("0s exec /bin/x y")
		*tpl.ChangeScript.FailOnError = true
		b.servers.set("db", 1)
		goes(time.Second)
		b.asks("1s exec /bin/x y", "1s fail Template ran script /bin/x with exit code 1: no")
	})
}

// TestChangeDetection holds that the task is asked exactly as often as what is on disk changes while it runs.
func TestChangeDetection(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ports := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 12).Draw(rt, "ports")
		killed := rapid.SliceOfN(rapid.IntRange(0, 3), len(ports), len(ports)).Draw(rt, "killed")
		synctest.Test(t, func(t *testing.T) {
			tpl := port("db", "signal", "SIGHUP", 0)
			*tpl.EmbeddedTmpl = `{{ range nomadService "db" }}{{ divide 2 .Port }}{{ end }}`
			b := newBench(t, tpl)
			defer b.end()
			b.start()
			disk, want := 0, 0
			for i, n := range ports {
				if killed[i] == 0 { // the agent is, and the port changes before the next one begins
					b.kill()
					b.wait.Wait()
					b.servers.set("db", n)
					b.agent(b.hook.Dir)
					_ = b.hook.Reattach(context.Background(), b.req, &hook.TaskResponse{})
				} else {
					b.servers.set("db", n)
				}
				goes(time.Second)
				if n/2 != disk {
					disk, want = n/2, want+1
				}
			}
			if got := len(b.task.list()); got != want {
				t.Errorf("asked %d times, the content changed %d times", got, want)
			}
			b.has("local/0", fmt.Sprint(disk))
		})
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}
