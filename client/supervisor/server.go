package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

const (
	dirPrefix    = "s-"
	socketSuffix = ".sock"
	writeTimeout = 10 * time.Second // for an agent that no longer reads
	maxStarts    = 8                // that are prepared side by side
)

// server is a running supervisor.
type server struct {
	logger  hclog.Logger
	options Options
	base    string // directory of all supervisors
	name    string
	dir     string // our own
	bootID  string
	cgroups cgroups
	homes   map[string]int // of v1, by mount
	null    *os.File

	oomScore int // our own oom_score_adj
	lock     *os.File
	baseFD   *os.File
	listen   net.Listener
	poller   *poller
	syncer   *syncer
	leases   *leases
	starts   chan struct{}
	quit     chan string
	work     sync.WaitGroup

	spawning sync.Mutex // a child is not waited for before its maker has noted it

	mu      sync.Mutex
	tasks   map[string]*task
	byPID   map[int]*task
	conns   map[*agentConn]bool
	idle    *time.Timer
	closing bool
	fault   error // why it ends though it has tasks
}

func newServer(o Options, logger hclog.Logger) (*server, error) {
	base, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("find directory: %w", err)
	}
	self, err := readProcess(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("read own process: %w", err)
	}
	s := &server{
		logger: logger, options: o, base: base, bootID: bootID(), syncer: newSyncer(), starts: make(chan struct{}, maxStarts),
		quit: make(chan string, 1), tasks: map[string]*task{}, byPID: map[int]*task{}, conns: map[*agentConn]bool{},
		name: fmt.Sprintf("%s%d-%d", dirPrefix, self.pid, self.startTick),
	}
	s.dir = filepath.Join(base, s.name)
	if !o.NoCgroups {
		s.cgroups = findCgroups(o.Mountinfo)
	}
	s.homes = s.cgroups.homes()
	if s.oomScore, err = readOOMScore(); err != nil {
		return nil, err
	}
	if s.poller, err = newPoller(logger, s.broken); err != nil {
		return nil, err
	}
	if s.leases, err = newLeases(s); err != nil {
		return nil, err
	}
	go s.poller.run()
	go s.syncer.run()
	return s, nil
}

// open makes our directory, takes over what dead supervisors left and begins to listen.
func (s *server) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	var err error
	if s.lock, err = lockDir(s.dir, true); err != nil {
		return err
	}
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open null device: %w", err)
	}
	if err := s.adoptAll(); err != nil {
		return err
	}
	if s.baseFD, err = os.Open(s.base); err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	if s.listen, err = net.Listen("unix", socketPath(s.baseFD, s.name)); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.idleChanged()
	return nil
}

// socketPath names a socket by its open directory, since a socket's address may have no more than 107 bytes.
func socketPath(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s%s", dir.Fd(), name, socketSuffix)
}

// close ends everything but the tasks.
func (s *server) close() {
	s.mu.Lock()
	s.closing = true
	for c := range s.conns {
		c.conn.Close()
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	empty := len(s.tasks) == 0
	s.mu.Unlock()
	if s.listen != nil {
		s.listen.Close()
	}
	s.work.Wait()
	s.syncer.close()
	s.poller.close()
	s.leases.close()
	if empty && s.lock != nil {
		os.RemoveAll(s.dir)
	}
	for _, fd := range s.homes {
		unix.Close(fd)
	}
	for _, f := range []*os.File{s.lock, s.null, s.baseFD} {
		if f != nil {
			f.Close()
		}
	}
}

// reap waits for all children that have ended. Those we do not know are orphans of some task's tree.
func (s *server) reap() {
	for {
		s.spawning.Lock()
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		var t *task
		if pid > 0 {
			s.mu.Lock()
			t = s.byPID[pid]
			delete(s.byPID, pid)
			s.mu.Unlock()
		}
		s.spawning.Unlock()
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || pid <= 0:
			return
		case t != nil:
			s.ended(t, exitOf(ws))
		}
	}
}

func exitOf(ws syscall.WaitStatus) Exit {
	e := Exit{Known: true, At: time.Now()}
	if ws.Signaled() {
		e.Signal = int(ws.Signal())
		e.Code = 128 + e.Signal
	} else {
		e.Code = ws.ExitStatus()
	}
	return e
}

// busy says why the supervisor is still needed.
func (s *server) busy() string {
	for _, t := range s.tasks {
		if t.phase < phaseEnded {
			return "tasks are running"
		}
	}
	return ""
}

// idleChanged starts or stops the clock after which an unneeded supervisor goes. Exits nobody has read yet do not
// keep it: they are on disk, where the next supervisor finds them.
func (s *server) idleChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	if s.closing || len(s.conns) > 0 || s.busy() != "" {
		return
	}
	s.idle = time.AfterFunc(s.options.Idle, func() { s.quitIfIdle("idle") })
}

// quitIfIdle ends the supervisor unless it has tasks. An agent that is connected counts only against idleness.
func (s *server) quitIfIdle(why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason := s.busy(); reason != "" {
		return refuse(codeBusy, "supervisor is not idle: %s", reason)
	}
	if why == "idle" && len(s.conns) > 0 {
		return refuse(codeBusy, "supervisor is not idle: an agent is connected")
	}
	s.closing = true
	select {
	case s.quit <- why:
	default:
	}
	return nil
}

// broken ends the supervisor though it has tasks, since it cannot look after them: the agent notices and starts another,
// which takes them over.
func (s *server) broken(err error) {
	s.logger.Error("supervisor cannot look after its tasks any more", "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing, s.fault = true, err
	select {
	case s.quit <- "broken":
	default:
	}
}

// agentConn is one connection of an agent.
type agentConn struct {
	conn net.Conn
	mu   sync.Mutex // one message at a time
}

func (c *agentConn) send(r *response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := writeMessage(c.conn, r); err != nil {
		c.conn.Close()
	}
}

func (s *server) accept(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := s.listen.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.logger.Error("cannot accept", "error", err)
			// Out of files, most likely: do not spin. The tasks matter more than a new agent.
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		c := &agentConn{conn: conn}
		s.mu.Lock()
		if s.closing {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.conns[c] = true
		s.mu.Unlock()
		s.idleChanged()
		go s.serve(c)
	}
}

// serve reads an agent's requests until it goes.
func (s *server) serve(c *agentConn) {
	defer func() {
		c.conn.Close()
		s.mu.Lock()
		delete(s.conns, c)
		for _, t := range s.tasks {
			t.waiters = slices.DeleteFunc(t.waiters, func(w waiter) bool { return w.conn == c })
		}
		s.mu.Unlock()
		s.idleChanged()
	}()
	r := bufio.NewReader(c.conn)
	for {
		var req request
		if err := readMessage(r, &req); err != nil {
			return
		}
		s.handle(c, &req)
	}
}

// handle answers a request, now or when what it waits for has come.
func (s *server) handle(c *agentConn, req *request) {
	reply := func(resp response, err error) {
		resp.ID = req.ID
		var ref *refusal
		switch {
		case errors.As(err, &ref):
			resp.Code, resp.Error = ref.code, ref.text
		case err != nil:
			resp.Code, resp.Error = "error", err.Error()
		}
		c.send(&resp)
	}
	switch req.Op {
	case opHello:
		reply(response{Hello: &Hello{Version: ProtocolVersion, Name: s.name, PID: os.Getpid(), Cgroups: s.cgroups.usable()}}, nil)
	case opStart:
		t, err := s.register(req.Start)
		if err != nil {
			reply(response{}, err)
			return
		}
		s.work.Go(func() {
			s.starts <- struct{}{}
			defer func() { <-s.starts }()
			info, err := s.startTask(t, req.Start)
			reply(response{Task: info}, err)
		})
	case opStop:
		s.withTask(req, reply, func(t *task) {
			err := s.stopTask(t, syscall.Signal(req.Signal), req.Timeout)
			s.whenEnded(c, t, func(t *task, waitErr error) { reply(response{Task: t.info()}, errors.Join(err, waitErr)) })
		})
	case opSignal:
		s.withTask(req, reply, func(t *task) { reply(response{}, s.signalTask(t, syscall.Signal(req.Signal))) })
	case opWait:
		s.withTask(req, reply, func(t *task) {
			s.whenEnded(c, t, func(t *task, err error) { reply(response{Task: t.info()}, err) })
		})
	case opStatus:
		s.withTask(req, reply, func(t *task) {
			answer := func(t *task, err error) {
				s.mu.Lock()
				info := t.info()
				s.mu.Unlock()
				reply(response{Task: info}, err)
			}
			if req.Started {
				s.whenStarted(c, t, answer)
				return
			}
			answer(t, nil)
		})
	case opList:
		reply(response{Tasks: s.list()}, nil)
	case opStats:
		s.withTask(req, reply, func(t *task) {
			s.mu.Lock()
			running := t.phase == phaseRunning
			s.mu.Unlock()
			if !running {
				reply(response{}, nil)
				return
			}
			s.work.Go(func() { reply(response{Stats: statsOf(t.pids()), Usage: usageOf(t.rec.cgroups())}, nil) })
		})
	case opDestroy, opAck:
		s.destroyTask(req.TaskID, req.Force && req.Op == opDestroy, func(err error) { reply(response{}, err) })
	case opRenew:
		reply(response{Tasks: s.leases.renew(req.Leases)}, nil)
	case opShutdown:
		reply(response{}, s.quitIfIdle("asked to"))
	default:
		reply(response{}, refuse(codeInvalid, "unknown operation %q", req.Op))
	}
}

func (s *server) withTask(req *request, reply func(response, error), fn func(*task)) {
	s.mu.Lock()
	t := s.tasks[req.TaskID]
	s.mu.Unlock()
	if t == nil {
		reply(response{}, refuse(codeNotFound, "no task %s", req.TaskID))
		return
	}
	fn(t)
}

// whenStarted calls fn once the task has started or did not, at once if that is over.
func (s *server) whenStarted(c *agentConn, t *task, fn func(*task, error)) {
	s.mu.Lock()
	if t.phase == phaseStarting {
		var once sync.Once
		t.onRun = append(t.onRun, func() { once.Do(func() { fn(t, nil) }) })
		t.waiters = append(t.waiters, waiter{c, func(t *task, err error) { once.Do(func() { fn(t, err) }) }})
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	fn(t, nil)
}

// whenEnded calls fn once the task has ended, at once if it has already.
func (s *server) whenEnded(c *agentConn, t *task, fn func(*task, error)) {
	s.mu.Lock()
	if t.phase != phaseEnded {
		t.waiters = append(t.waiters, waiter{c, fn})
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	fn(t, nil)
}

func (s *server) signalTask(t *task, sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase != phaseRunning {
		return refuse(codeNotFound, "task %s has ended", t.rec.ID)
	}
	if sig == unix.SIGKILL {
		s.work.Go(func() { s.killTask(t) })
		return nil
	}
	return t.signal(sig)
}

func (s *server) list() []TaskInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]TaskInfo, 0, len(s.tasks))
	for _, t := range s.tasks {
		out = append(out, *t.info())
	}
	return out
}
