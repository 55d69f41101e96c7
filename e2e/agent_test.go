package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
)

const waitLimit = 30 * time.Second

var build = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("NOMADLITE_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "nomadlite-e2e")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "nomadlite")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/nomadlite/nomadlite").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

func binary(t testing.TB) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// agent is one running process of the binary.
type agent struct {
	t      testing.TB
	dir    string
	config map[string]any
	dev    bool
	port   int
	cmd    *exec.Cmd
	exited chan error
	log    *lockedBuffer
	client *api.Client
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// freePorts finds ports that nothing listens on.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// newAgent prepares an agent with data on disk that is server and client, unless change says otherwise.
func newAgent(t testing.TB, change func(config map[string]any)) *agent {
	t.Helper()
	ports := freePorts(t, 3)
	dir := t.TempDir()
	a := &agent{t: t, dir: dir, port: ports[0], log: &lockedBuffer{}, config: map[string]any{
		"name":      "e2e",
		"data_dir":  filepath.Join(dir, "data"),
		"log_level": "DEBUG",
		"bind_addr": "127.0.0.1",
		"ports":     map[string]any{"http": ports[0], "rpc": ports[1], "serf": ports[2]},
		"server":    map[string]any{"enabled": true, "bootstrap_expect": 1},
		"client":    map[string]any{"enabled": true},
		"plugin":    map[string]any{"raw_exec": map[string]any{"config": map[string]any{"enabled": true}}},
	}}
	if change != nil {
		change(a.config)
	}
	client, err := api.NewClient(api.Config{Address: fmt.Sprintf("http://127.0.0.1:%d", a.port)})
	if err != nil {
		t.Fatal(err)
	}
	a.client = client
	t.Cleanup(a.cleanup)
	return a
}

// start runs the agent and waits until it says that it is ready (as it does to a service manager).
func (a *agent) start() {
	a.t.Helper()
	if err := a.tryStart(); err != nil {
		a.t.Fatalf("%v\n%s", err, a.log)
	}
}

func (a *agent) tryStart() error {
	raw, err := json.Marshal(a.config)
	if err != nil {
		return err
	}
	file := filepath.Join(a.dir, "agent.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	socket := filepath.Join(a.dir, fmt.Sprintf("notify-%d", time.Now().UnixNano()))
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer notify.Close()
	args := []string{"agent", "-config", file}
	if a.dev {
		args = append(args, "-dev")
	}
	a.cmd = exec.Command(binary(a.t), args...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	a.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.cmd.Start(); err != nil {
		return err
	}
	a.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan error) { exited <- cmd.Wait(); close(exited) }(a.cmd, a.exited)
	ready := make(chan error, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			_ = notify.SetReadDeadline(time.Now().Add(waitLimit))
			n, err := notify.Read(buf)
			if err != nil {
				ready <- fmt.Errorf("agent is not ready after %s: %w", waitLimit, err)
				return
			}
			if strings.Contains(string(buf[:n]), "READY=1") {
				ready <- nil
				return
			}
		}
	}()
	select {
	case err := <-ready:
		return err
	case err := <-a.exited:
		return fmt.Errorf("agent ended at once: %v", err)
	}
}

// kill9 ends the agent without any notice and waits for its end.
func (a *agent) kill9() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	<-a.exited
}

// stop asks the agent to end and waits for it.
func (a *agent) stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-a.exited:
		return err
	case <-time.After(waitLimit):
		_ = a.cmd.Process.Kill()
		return fmt.Errorf("agent did not end within %s", waitLimit)
	}
}

// cleanup stops what runs: jobs first, so that nothing outlives the test.
func (a *agent) cleanup() {
	if a.cmd == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	select {
	case <-a.exited:
		if err := a.tryStart(); err != nil {
			a.t.Logf("restart for cleaning up: %v", err)
			return
		}
	default:
	}
	a.stopAll(ctx)
	if err := a.stop(); err != nil && !strings.Contains(err.Error(), "signal") {
		a.t.Logf("stop agent: %v", err)
	}
	if a.t.Failed() {
		a.t.Logf("agent's log:\n%s", tail(a.log.String(), 20000))
	}
	a.unmount()
	a.client.Close()
}

// unmount takes down the secrets directories of ended allocations, which a node keeps until garbage collection.
func (a *agent) unmount() {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		a.t.Logf("read mounts: %v", err)
		return
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], a.dir+"/") {
			if err := syscall.Unmount(fields[1], syscall.MNT_DETACH); err != nil {
				a.t.Logf("unmount %s: %v", fields[1], err)
			}
		}
	}
}

func tail(s string, n int) string {
	if len(s) > n {
		return "..." + s[len(s)-n:]
	}
	return s
}

// stopAll stops every job at once and waits until no allocation runs.
func (a *agent) stopAll(ctx context.Context) {
	jobs, _, err := a.client.Jobs().List(ctx, &api.QueryOptions{Namespace: "*"})
	if err != nil {
		return
	}
	zero := time.Duration(0)
	for _, j := range jobs {
		_, _, _ = a.client.Jobs().Deregister(ctx, j.ID, &api.DeregisterOptions{NoShutdownDelay: true, KillTimeout: &zero}, &api.WriteOptions{Namespace: j.Namespace})
	}
	q := &api.QueryOptions{Namespace: "*", WaitTime: 5 * time.Second}
	for {
		allocs, meta, err := a.client.Allocations().List(ctx, q)
		if err != nil {
			return
		}
		live := 0
		for _, alloc := range allocs {
			if alloc.ClientStatus == "running" || alloc.ClientStatus == "pending" {
				live++
			}
		}
		if live == 0 {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}

// cli runs a command of the binary against the agent.
func (a *agent) cli(stdin string, args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	return runCLI(a.t, fmt.Sprintf("http://127.0.0.1:%d", a.port), a.dir, stdin, args...)
}

func runCLI(t testing.TB, addr, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "NOMAD_ADDR="+addr)
	err := cmd.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatalf("run %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
