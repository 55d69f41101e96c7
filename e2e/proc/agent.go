package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// Limit bounds each wait for an agent.
const Limit = 60 * time.Second

// Agent is one agent process.
type Agent struct {
	Client *api.Client
	Dir    string         // for the test's files; data_dir lies in it
	Config map[string]any // written as the agent's configuration at each Start
	HTTP   int            // port
	RPC    int            // port
	Env    []string       // added to the environment

	t      testing.TB
	bin    string
	args   []string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	err    error         // how it ended; read after exited
	log    *output
}

// New prepares an agent that is server and client with its data on disk, unless change says otherwise.
func New(t testing.TB, change func(config map[string]any)) *Agent {
	t.Helper()
	a := prepare(t, nil)
	a.Config["data_dir"] = filepath.Join(a.Dir, "data")
	a.Config["server"] = map[string]any{"enabled": true, "bootstrap_expect": 1}
	a.Config["client"] = map[string]any{"enabled": true}
	a.Config["plugin"] = map[string]any{"raw_exec": map[string]any{"config": map[string]any{"enabled": true}}}
	if change != nil {
		change(a.Config)
	}
	return a
}

// NewDev prepares a dev agent, all in memory.
func NewDev(t testing.TB) *Agent {
	t.Helper()
	return prepare(t, []string{"-dev"})
}

func prepare(t testing.TB, args []string) *Agent {
	t.Helper()
	ports := FreePorts(t, 3)
	a := &Agent{t: t, bin: Binary(t), Dir: t.TempDir(), HTTP: ports[0], RPC: ports[1], args: args, log: &output{}, Config: map[string]any{
		"name": "proc", "log_level": "INFO", "bind_addr": "127.0.0.1",
		"ports": map[string]any{"http": ports[0], "rpc": ports[1], "serf": ports[2]},
	}}
	client, err := api.NewClient(api.Config{Address: a.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	a.Client = client
	t.Cleanup(a.cleanup)
	return a
}

// OwnBinary makes the agent run a copy of the binary. Its memory can then be measured: what processes of the same file
// share is counted in part only for each of them, and an earlier agent's supervisor may be one of them.
func (a *Agent) OwnBinary() {
	a.t.Helper()
	raw, err := os.ReadFile(a.bin)
	if err == nil {
		a.bin = filepath.Join(a.Dir, "nomadlite")
		err = os.WriteFile(a.bin, raw, 0o755)
	}
	if err != nil {
		a.t.Fatalf("copy the binary: %v", err)
	}
}

// tried counts the ports that were looked at: of two agents that are prepared before either listens, each gets its own.
var tried atomic.Int64

// FreePorts finds ports that nothing listens on. They are from below the range out of which the kernel gives
// connections theirs, so that none of these takes one before the agent listens.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	base := 10000 + os.Getpid()*7%12000
	for len(ports) < n {
		port := base + int(tried.Add(1))
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		ports = append(ports, port)
	}
	return ports
}

// Start runs the agent and waits until it says that it is ready, as it does to a service manager. It gives the time
// from the exec until then.
func (a *Agent) Start() time.Duration {
	a.t.Helper()
	took, err := a.start()
	if err != nil {
		a.t.Fatalf("%v\n%s", err, a.Log())
	}
	return took
}

func (a *Agent) start() (time.Duration, error) {
	raw, err := json.Marshal(a.Config)
	if err != nil {
		return 0, fmt.Errorf("encode configuration: %w", err)
	}
	file := filepath.Join(a.Dir, "agent.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return 0, fmt.Errorf("write configuration: %w", err)
	}
	// Paths of sockets are short, those of test folders may be long.
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		return 0, fmt.Errorf("make folder for the notify socket: %w", err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return 0, fmt.Errorf("listen for readiness: %w", err)
	}
	defer notify.Close()
	a.cmd = exec.Command(a.bin, append([]string{"agent", "-config", file}, a.args...)...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	a.cmd.Env = append(append(os.Environ(), "NOTIFY_SOCKET="+socket), a.Env...)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := a.cmd.Start(); err != nil {
		a.cmd = nil
		return 0, fmt.Errorf("start agent: %w", err)
	}
	exited := make(chan struct{})
	a.exited = exited
	go func() {
		a.err = a.cmd.Wait()
		close(exited)
	}()
	ready := make(chan error, 1)
	go func() { ready <- awaitReady(notify) }() // ends when notify is closed, at the latest
	select {
	case err := <-ready:
		return time.Since(began), err
	case <-exited:
		return 0, fmt.Errorf("agent ended at once: %w", a.err)
	}
}

func awaitReady(notify *net.UnixConn) error {
	_ = notify.SetReadDeadline(time.Now().Add(Limit))
	buf := make([]byte, 4096)
	for {
		n, err := notify.Read(buf)
		if err != nil {
			return fmt.Errorf("agent is not ready after %s: %w", Limit, err)
		}
		if strings.Contains(string(buf[:n]), "READY=1") {
			return nil
		}
	}
}

// PID is the process id of the agent.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Addr is the address of the agent's public API.
func (a *Agent) Addr() string { return fmt.Sprintf("http://127.0.0.1:%d", a.HTTP) }

// Log is what the agent has written.
func (a *Agent) Log() string { return a.log.String() }

// Logs gives a channel that is closed once the agent has written text from now on.
func (a *Agent) Logs(text string) <-chan struct{} { return a.log.await(text) }

// Kill ends the agent without any notice (-9) and waits for its end.
func (a *Agent) Kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatalf("kill agent: %v", err)
	}
	<-a.exited
}

// Stop asks the agent to end and waits for it.
func (a *Agent) Stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-a.exited:
		return a.err
	case <-time.After(Limit):
		_ = a.cmd.Process.Kill()
		<-a.exited
		return fmt.Errorf("agent did not end within %s", Limit)
	}
}

// cleanup stops what runs, jobs first.
func (a *Agent) cleanup() {
	defer a.Client.Close()
	if a.cmd == nil {
		return
	}
	if a.serverOnly() { // it has no tasks, and may be the last of a cluster that cannot decide any more
		a.end()
		return
	}
	select {
	case <-a.exited:
		if len(a.args) > 0 { // the tasks of a dev agent end with it
			break
		}
		if _, err := a.start(); err != nil {
			a.t.Logf("restart for cleaning up: %v", err)
		}
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	select {
	case <-a.exited:
	default:
		a.stopJobs(ctx)
		if err := a.Stop(); err != nil {
			a.t.Logf("stop agent: %v", err)
		}
	}
	if err := unmountBelow(a.Dir); err != nil {
		a.t.Logf("clean up: %v", err)
	}
	a.showLog()
}

// serverOnly says that the agent is no client.
func (a *Agent) serverOnly() bool {
	client, _ := a.Config["client"].(map[string]any)
	return client != nil && client["enabled"] == false
}

// end stops a server that may have ended already.
func (a *Agent) end() {
	select {
	case <-a.exited:
	default:
		if err := a.Stop(); err != nil {
			a.t.Logf("stop agent: %v", err)
		}
	}
	a.showLog()
}

func (a *Agent) showLog() {
	if a.t.Failed() {
		log := a.Log()
		a.t.Logf("agent's log:\n%s", log[max(0, len(log)-20000):])
	}
}

// stopJobs stops every job at once and waits until no allocation of a task runs.
func (a *Agent) stopJobs(ctx context.Context) {
	all := &api.QueryOptions{Namespace: structs.AllNamespaces}
	jobs, _, err := a.Client.Jobs().List(ctx, all)
	if err != nil {
		return
	}
	now := time.Duration(0)
	for _, j := range jobs {
		_, _, _ = a.Client.Jobs().Deregister(ctx, j.ID, &api.DeregisterOptions{NoShutdownDelay: true, KillTimeout: &now},
			&api.WriteOptions{Namespace: j.Namespace})
	}
	q := &api.QueryOptions{Namespace: structs.AllNamespaces, WaitTime: 5 * time.Second}
	for {
		allocs, meta, err := a.Client.Allocations().List(ctx, q)
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

// output collects what a process writes.
type output struct {
	mu      sync.Mutex
	b       bytes.Buffer
	awaited []awaited
}

// awaited is a text that somebody waits for, from a place in the output on.
type awaited struct {
	text  string
	from  int
	there chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.b.Write(p)
	o.awaited = slices.DeleteFunc(o.awaited, func(w awaited) bool {
		found := bytes.Contains(o.b.Bytes()[w.from:], []byte(w.text))
		if found {
			close(w.there)
		}
		return found
	})
	return n, err
}

func (o *output) await(text string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := awaited{text: text, from: o.b.Len(), there: make(chan struct{})}
	o.awaited = append(o.awaited, w)
	return w.there
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
