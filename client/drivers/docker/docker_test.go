package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/drivertest"
	"github.com/nomadlite/nomadlite/client/logs"
)

const testImage = "busybox:1"

// engineSocket says where the engine of these tests is; TestMain hands it down.
const engineSocket = "NOMADLITE_TEST_ENGINE"

func TestMain(m *testing.M) { os.Exit(withEngine(m)) }

func withEngine(m *testing.M) int {
	if drivertest.DockerdMissing() != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "docker")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine, err := drivertest.StartDockerd(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := engine.ImportBusybox(ctx, "busybox", "1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = engine.Stop()
		return 1
	}
	os.Setenv(engineSocket, engine.Socket)
	code := m.Run()
	if err := errors.Join(engine.Stop(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func testPlugin(t *testing.T) Plugin {
	socket := os.Getenv(engineSocket)
	if socket == "" {
		t.Skip(drivertest.DockerdMissing())
	}
	return Plugin{Endpoint: "unix://" + socket, AllowCaps: defaultCaps(), AllowRuntimes: []string{"runc"}}
}

// opener makes drivers that follow one another, as agents of one node do.
func opener(t *testing.T) func(*testing.T) driver.Driver {
	plugin, state := testPlugin(t), t.TempDir()
	var last *Driver
	return func(t *testing.T) driver.Driver {
		if last != nil {
			if err := last.Close(); err != nil {
				t.Fatal(err)
			}
		}
		d, err := New(Config{Plugin: plugin, StateDir: state})
		if err != nil {
			t.Fatal(err)
		}
		last = d
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
}

func sh(script string) drivertest.Config {
	return drivertest.Config{"image": testImage, "network_mode": "none", "command": "/bin/sh", "args": []any{"-c", script}}
}

func inHostPIDs(c drivertest.Config) drivertest.Config {
	c["pid_mode"] = "host"
	return c
}

func TestConformance(t *testing.T) {
	inside := func(path string) string { return allocTarget + "/" + filepath.Base(path) }
	drivertest.Run(t, drivertest.Suite{
		Open: opener(t),
		Exit: func(code int) drivertest.Config { return sh(fmt.Sprintf("exit %d", code)) },
		Run: func() drivertest.Config {
			return sh(`trap "exit 3" TERM INT; sleep 1000 & wait`)
		},
		RunFor: func(d time.Duration, code int) drivertest.Config {
			return sh(fmt.Sprintf("sleep %f; exit %d", d.Seconds(), code))
		},
		Stubborn: func() drivertest.Config { return sh(`trap "" INT TERM; echo ready; while :; do sleep 1000; done`) },
		OnSignal: func(code int) drivertest.Config {
			return sh(fmt.Sprintf(`trap "exit %d" USR1; echo ready; while :; do sleep 0.05; done`, code))
		},
		Output: func(out, errs string) drivertest.Config {
			c := sh(`printf %s "$0"; printf %s "$1" >&2`)
			c["args"] = append(c["args"].([]any), out, errs)
			return c
		},
		Tree: func(file string) drivertest.Config {
			return inHostPIDs(sh(fmt.Sprintf(`file=%s; trap "exit 0" TERM; sleep 1000 & echo $! >$file
				(setsid sh -c 'echo $$ >>"$0"; echo ready; exec sleep 1000' $file &); while :; do sleep 0.05; done`, inside(file))))
		},
		Bomb: func(dir string) drivertest.Config {
			return sh(`bomb() { while :; do env -i /bin/busybox setsid /bin/sh -c 'sleep 0.05 & sleep 0.05 & exit' & sleep 0.01; done; }
				trap "" TERM; bomb & bomb & mkdir ` + inside(dir) + `; while :; do sleep 1000; done`)
		},
		Hungry:  func() drivertest.Config { return sh("a=x; while :; do a=$a$a; done") },
		Env:     func(name string) drivertest.Config { return sh("echo $" + name) },
		Missing: func() drivertest.Config { c := sh(""); c["command"] = "there-is-no-such-command"; return c },
		Bad: []drivertest.BadConfig{
			{Config: drivertest.Config{}, Faults: []string{`"image" is missing`}},
			{Config: drivertest.Config{"image": 7, "args": "x", "imgae": "y", "privileged": true, "cap_add": []any{"NET_ADMIN"},
				"mount": []any{map[string]any{"type": "cloud", "speed": 3}}, "dns_servers": []any{"here"}, "volumes": []any{"a"},
				"ulimit": map[string]any{"nofile": "many"}, "pids_limit": -1, "image_pull_timeout": "soon", "runtime": "other",
				"labels": map[string]any{labelTask: "x"}},
				Faults: []string{`"image" must be a string`, `"args" must be a list`, `no option "imgae"`, "privileged containers are not allowed",
					"net_admin", `"mount.type" must be`, `no option "mount.speed"`, `"mount.target" is missing`, `"dns_servers"`, `"volumes"`,
					`"ulimit"`, `"pids_limit"`, `"image_pull_timeout"`, `runtime "other"`, "the node's own"}},
		},
	})
}

// config is a task of its own in a new directory, without logs.
func config(t *testing.T, block drivertest.Config) *driver.TaskConfig {
	dir := t.TempDir()
	cfg := &driver.TaskConfig{ID: t.Name() + "/task/0", AllocID: t.Name() + "-" + filepath.Base(dir), Task: "task",
		Config: block, LogsDisabled: true, AllocDir: filepath.Join(dir, "alloc"), TaskDir: filepath.Join(dir, "task")}
	for _, d := range []string{"alloc", "task/local", "task/secrets"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

func TestImageThatCannotBeHad(t *testing.T) {
	d := opener(t)(t)
	for _, c := range []struct {
		image   string
		forever bool
	}{
		{"sha256:" + strings.Repeat("ab", 32), true},
		{"No Such:Name", true},
		{"127.0.0.1:1/nobody/listens:1", false}, // the registry may come back
	} {
		block := sh("exit 0")
		block["image"] = c.image
		_, err := d.Start(t.Context(), config(t, block))
		if err == nil || !strings.Contains(err.Error(), c.image) || errors.Is(err, driver.ErrUnrecoverable) != c.forever {
			t.Errorf("%s: %v", c.image, err)
		}
	}
}

func TestImageByID(t *testing.T) {
	d := opener(t)(t).(*Driver)
	id, err := d.imageID(t.Context(), testImage)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{id, strings.TrimPrefix(id, "sha256:")[:12]} {
		block := sh("exit 0")
		block["image"] = name
		cfg := config(t, block)
		if _, err := d.Start(t.Context(), cfg); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := d.Destroy(t.Context(), cfg.ID, true); err != nil {
			t.Error(err)
		}
	}
}

func TestMountsStayInTheTaskDirectory(t *testing.T) {
	d := opener(t)(t)
	for _, source := range []string{"/etc", "../alloc", "link", "link/below"} {
		for _, block := range []drivertest.Config{
			{"volumes": []any{source + ":/x"}},
			{"mount": []any{map[string]any{"type": "bind", "source": source, "target": "/x"}}},
		} {
			block["image"] = testImage
			cfg := config(t, block)
			if err := os.Symlink("/etc", filepath.Join(cfg.TaskDir, "link")); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Start(t.Context(), cfg); !errors.Is(err, driver.ErrUnrecoverable) {
				t.Errorf("%v: %v", block, err)
			}
		}
	}
}

func TestExecInAContainer(t *testing.T) {
	d := opener(t)(t).(*Driver)
	cfg := config(t, sh("sleep 1000"))
	if _, err := d.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	defer d.Destroy(context.Background(), cfg.ID, true)
	const script = "read x; echo got $x; echo bad >&2; exit 5"
	for _, tty := range []bool{false, true} {
		var out, errs bytes.Buffer
		code, err := d.Exec(t.Context(), cfg, &driver.ExecRequest{Command: []string{"/bin/sh", "-c", script},
			TTY: tty, Stdin: strings.NewReader("word\n"), Stdout: &out, Stderr: &errs})
		if err != nil || code != 5 || !strings.Contains(out.String(), "got word") || strings.Contains(out.String(), "bad") != tty {
			t.Errorf("terminal %v: %d %v, %q %q", tty, code, err, out.String(), errs.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	endless := &driver.ExecRequest{Command: []string{"/bin/busybox", "sleep", "1000"}}
	if _, err := d.Exec(ctx, cfg, endless); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that is given up: %v", err)
	}
}

// TestOutputIsWrittenOnce ends the agent again and again while a container writes and puts its position back once, as a crash does.
func TestOutputIsWrittenOnce(t *testing.T) {
	open := opener(t)
	const lines = 5000
	cfg := config(t, sh(fmt.Sprintf(`n=0; while [ $n -lt %d ]; do echo line-$n; n=$((n+1)); [ $((n %% 200)) = 0 ] && sleep 0.02; done`, lines)))
	dir := filepath.Join(cfg.AllocDir, "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg.LogsDisabled, cfg.MaxLogFiles, cfg.LogFileBytes = false, 10, 16<<10
	cfg.StdoutPath, cfg.StderrPath = logs.FIFOPath(dir, "task", logs.Stdout), logs.FIFOPath(dir, "task", logs.Stderr)
	d := open(t)
	if _, err := d.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	defer func() { d.Destroy(context.Background(), cfg.ID, true) }()
	for i := range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, _ = d.Wait(ctx, cfg.ID)
		cancel()
		own := d.(*Driver)
		watched, err := own.task(t.Context(), cfg.ID)
		if err != nil {
			t.Fatal(err)
		}
		state := own.positionPath(watched.container)
		before, _ := os.ReadFile(state)
		d = open(t)
		if i == 3 { // the position of a moment before: as after a crash
			if err := os.WriteFile(state, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.(*Driver).Find(t.Context(), cfg.ID); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := d.Wait(t.Context(), cfg.ID); err != nil || !r.Successful() {
		t.Fatalf("%+v %v", r, err)
	}
	var got, want strings.Builder
	for n := 0; ; n++ {
		data, err := os.ReadFile(filepath.Join(dir, logs.FileName("task", logs.Stdout, n)))
		if err != nil {
			break
		}
		got.Write(data)
	}
	for n := range lines {
		fmt.Fprintf(&want, "line-%d\n", n)
	}
	if got.String() != want.String() {
		t.Errorf("%d bytes are written, want %d", got.Len(), want.Len())
	}
}

// TestPositionsBeforeTheEndOfTheFiles replays a log whose last entries were written, one of them in part, and not noted.
func TestPositionsBeforeTheEndOfTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fifo := logs.FIFOPath(dir, "task", logs.Stdout)
	if err := os.WriteFile(filepath.Join(dir, logs.FileName("task", logs.Stdout, 0)), []byte("a\nb\nc\nd"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := logs.NewRotator(fifo, 3, 6)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	s := &stream{files: files, at: position{Time: 2, Count: 1, Size: 2}, skip: files.Since(0, 2)}
	for _, e := range []struct {
		at   int64
		text string
	}{{1, "x\n"}, {2, "a\n"}, {2, "b\n"}, {3, "c\n"}, {3, "dd\n"}, {3, "e\n"}} {
		if _, err := s.write(e.at, []byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for n := range 3 {
		data, _ := os.ReadFile(filepath.Join(dir, logs.FileName("task", logs.Stdout, n)))
		got += string(data)
	}
	if got != "a\nb\nc\ndd\ne\n" || s.skip != 0 {
		t.Errorf("%q, %d bytes still to be passed over", got, s.skip)
	}
}
