package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client"
	"github.com/nomadlite/nomadlite/nomadlite"
	"github.com/nomadlite/nomadlite/nomadlite/cluster"
	"github.com/nomadlite/nomadlite/structs"
)

// shutdownLimit bounds how long requests under way may take when the agent ends.
const shutdownLimit = 3 * time.Second

// Agent is one process: a server, a client, or both, and the public HTTP port.
type Agent struct {
	set    *Settings
	log    hclog.InterceptLogger
	server *nomadlite.Server
	client *client.Client
	http   net.Listener
	conns  *conns
	undo   []func() // closes what New opened, last first
}

// New opens what can fail: the log, the data directory's lock, the ports, the client's state. The error is one line for
// whoever started the agent.
func New(set *Settings, stderr io.Writer) (*Agent, error) {
	a := &Agent{set: set}
	if err := a.open(stderr); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *Agent) open(stderr io.Writer) error {
	if err := a.openLog(stderr); err != nil {
		return err
	}
	if a.set.DataDir != "" {
		if err := cluster.CheckVersion(a.set.DataDir); err != nil { // before anything is written there
			return err
		}
		unlock, err := lockDataDir(a.set.DataDir)
		if err != nil {
			return err
		}
		a.undo = append(a.undo, unlock)
	}
	var err error
	if a.http, err = net.Listen("tcp", a.set.HTTPAddr); err != nil {
		return fmt.Errorf("listen for the HTTP API: %w", portTaken(err))
	}
	a.undo = append(a.undo, func() { _ = a.http.Close() })
	if a.set.Server != nil {
		if err := a.openServer(); err != nil {
			return err
		}
	}
	if a.set.Client != nil {
		return a.openClient()
	}
	return nil
}

func (a *Agent) openLog(stderr io.Writer) error {
	out := stderr
	if a.set.LogFile != "" {
		file, err := os.OpenFile(a.set.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return fmt.Errorf("open log_file: %w", err)
		}
		a.undo = append(a.undo, func() { _ = file.Close() })
		out = io.MultiWriter(stderr, file)
	}
	a.log = hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "agent", Level: a.set.LogLevel, Output: out,
		JSONFormat: a.set.LogJSON, IncludeLocation: a.set.LogLocation})
	return nil
}

// lockDataDir makes the folder and keeps other agents out of it.
func lockDataDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be used: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "agent.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be used: %w", dir, err)
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockWait / 50) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if time.Now().After(deadline) {
			_ = file.Close()
			return nil, fmt.Errorf("data_dir %s is in use by another agent", dir)
		}
	}
}

// lockWait is how long a lock may be held after its agent was killed: a process which that agent was just making has
// all its files, the lock and the listening sockets among them, until it executes its program.
const lockWait = 500 * time.Millisecond

func (a *Agent) openServer() error {
	cfg := *a.set.Server
	cfg.Logger = a.log
	listener, err := net.Listen("tcp", cfg.RPCAddr)
	if err != nil {
		return fmt.Errorf("listen for servers and nodes: %w", portTaken(err))
	}
	cfg.Listener = listener
	if a.server, err = nomadlite.New(cfg); err != nil {
		_ = listener.Close()
		return err
	}
	a.undo = append(a.undo, func() { _ = a.server.Close() })
	if a.set.Client != nil && len(a.set.Client.Servers) == 0 {
		a.set.Client.Servers = []string{reachable(listener.Addr())}
	}
	return nil
}

// portTaken adds to the error of a listener what to do when its port is taken.
func portTaken(err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf("%w: stop what listens there, another agent perhaps, or choose other ports in the configuration: "+
		"ports { http = ..., rpc = ... }, one to a line", err)
}

// reachable is the address under which this very process reaches a listener of its own.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (a *Agent) openClient() error {
	cfg := *a.set.Client
	cfg.Logger = a.log
	if a.set.Dev {
		dir, err := os.MkdirTemp("", "nomadlite-dev-")
		if err != nil {
			return fmt.Errorf("make a folder for the dev agent: %w", err)
		}
		cfg.DataDir = dir
		a.undo = append(a.undo, func() { _ = os.RemoveAll(dir) })
	}
	var err error
	if a.client, err = client.New(cfg); err != nil {
		return err
	}
	return nil
}

// close undoes what New opened.
func (a *Agent) close() {
	for i := len(a.undo) - 1; i >= 0; i-- {
		a.undo[i]()
	}
	a.undo = nil
}

// HTTPAddr is where the public API listens.
func (a *Agent) HTTPAddr() string { return a.http.Addr().String() }

// Run serves until ctx ends, then stops in order: the client (in dev mode with its tasks), the HTTP port, the server. Each
// of them leaves the cluster first when the agent is configured to leave on what ended ctx. It gives the first fault of
// any part, nil when ctx ended it.
func (a *Agent) Run(ctx context.Context) error {
	defer a.close()
	a.log.Info("nomadlite agent starts", "version", structs.Version, "interface", structs.CompatVersion, "dev", a.set.Dev,
		"server", a.server != nil, "client", a.client != nil, "http", a.HTTPAddr())
	work, cancel := context.WithCancelCause(ctx)
	clientCtx, stopClient := context.WithCancel(context.WithoutCancel(ctx))
	defer stopClient()
	defer cancel(nil)
	background := context.WithoutCancel(ctx)
	if a.client != nil {
		if err := a.client.Start(work); err != nil {
			return err
		}
	}
	if a.server != nil && a.client != nil {
		a.server.Backend().LocalNode = a.client.NodeID
	}
	if a.server != nil {
		a.server.Backend().Stopping = work.Done()
	}
	web, err := a.webServer(background)
	if err != nil {
		return err
	}
	fail := func(what string, err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			cancel(fmt.Errorf("%s: %w", what, err))
		}
	}
	serverCtx, stopServer := context.WithCancel(background)
	defer stopServer()
	var serverDone, clientDone, rest sync.WaitGroup
	if a.server != nil {
		serverDone.Go(func() {
			err := a.server.Run(serverCtx)
			if err == nil && serverCtx.Err() == nil {
				err = errors.New("ended by itself")
			}
			fail("server", err)
		})
	}
	if a.client != nil {
		clientDone.Go(func() { fail("client", a.client.Run(clientCtx)) })
	}
	rest.Go(func() {
		if err := web.Serve(a.http); !errors.Is(err, http.ErrServerClosed) {
			fail("HTTP port", err)
		}
	})
	rest.Go(func() { a.announce(work) })
	rest.Go(func() { a.hangups(work) })
	<-work.Done()
	a.log.Info("agent stops")
	a.tellManager("STOPPING=1")
	leaves := a.set.leavesOn(context.Cause(work))
	switch {
	case a.client != nil && leaves:
		a.client.Depart(background)
	case a.client != nil && a.set.expectsBack(context.Cause(work)):
		a.client.ExpectBack(background)
	}
	stopClient()
	clientDone.Wait()
	if a.client != nil {
		if err := a.client.Close(); err != nil {
			a.log.Warn("client did not close cleanly", "error", err)
		}
	}
	a.shutWeb(background, web)
	if a.server != nil && leaves {
		a.server.Leave(background) // after its node, which leaves through it
	}
	stopServer()
	serverDone.Wait()
	rest.Wait()
	if cause := context.Cause(work); cause != nil && ctx.Err() == nil {
		return cause
	}
	return nil
}

// shutWeb lets short requests end and cuts long polls.
func (a *Agent) shutWeb(ctx context.Context, web *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	a.conns.closeUnused()
	if err := web.Shutdown(ctx); err != nil {
		_ = web.Close()
	}
}

// announce waits until the agent serves and tells the service manager.
func (a *Agent) announce(ctx context.Context) {
	if a.server != nil {
		select {
		case <-a.server.Ready():
		case <-ctx.Done():
			return
		}
	}
	if a.client != nil {
		select {
		case <-a.client.Ready():
		case <-ctx.Done():
			return
		}
	}
	a.log.Info("agent is ready")
	a.tellManager("READY=1")
}

// hangups says what SIGHUP does not do, instead of dying of it.
func (a *Agent) hangups(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-hangup:
			a.log.Warn("configuration is read at start only: restart the agent to apply changes; its tasks go on meanwhile")
		case <-ctx.Done():
			return
		}
	}
}

// tellManager notifies the service manager. The agent serves without its knowledge, too.
func (a *Agent) tellManager(state string) {
	if err := notifyManager(state); err != nil {
		a.log.Warn("could not tell the service manager", "state", state, "error", err)
	}
}

// notifyManager tells the service manager (sd_notify); without one it does nothing.
func notifyManager(state string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("reach service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
