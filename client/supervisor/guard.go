package supervisor

import (
	"bufio"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/internal/boottime"
)

// The guard is a process that does one thing: when its supervisor dies it kills what is left of the leased tasks, all of
// their trees, for the case that no agent lives to do so. It also kills what outlives its lease when the supervisor is
// frozen. There is one as long as a supervisor has had leased tasks.

// guarded tells the guard of one task.
type guarded struct {
	Task  TaskInfo
	Until boottime.Deadline
	Gone  bool // it has ended

	told chan struct{} // closed once the guard has it, or cannot be had; nil when nobody waits
}

const (
	guardFD      = 3
	guardTimeout = 5 * time.Second // for a guard that no longer reads
)

// guardGrace is how much later than the supervisor, and the agent, the guard kills.
const guardGrace = 2 * overdueGrace

// guardMain is the guard's process.
func guardMain(logger hclog.Logger) int {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	news := make(chan guarded)
	go func() {
		defer close(news)
		in := bufio.NewReader(os.NewFile(guardFD, "supervisor"))
		for {
			var g guarded
			if err := readMessage(in, &g); err != nil {
				return
			}
			news <- g
		}
	}()
	alarm := boottime.NewAlarm(boottime.System())
	defer alarm.Close()
	tasks := map[string]guarded{}
	for {
		select {
		case g, ok := <-news:
			if !ok {
				for _, g := range tasks {
					g.kill(logger, "its supervisor has died")
				}
				return 0
			}
			if g.Gone {
				delete(tasks, g.Task.ID)
			} else {
				tasks[g.Task.ID] = g
			}
		case <-alarm.C:
		}
		next := time.Duration(-1)
		for id, g := range tasks {
			if g.Until.Remaining(boottime.System()) <= -guardGrace {
				g.kill(logger, "its lease has run out")
				delete(tasks, id)
			} else if at := g.Until.At + guardGrace; next < 0 || at < next {
				next = at
			}
		}
		if next >= 0 {
			alarm.Set(next)
		}
	}
}

func (g *guarded) kill(logger hclog.Logger, why string) {
	if err := g.Task.kill(); err != nil {
		logger.Error("guard cannot kill a task", "task", g.Task.ID, "why", why, "error", err)
	}
}

// guard is the supervisor's side: one goroutine writes what has gathered, and starts the process when it is needed.
type guard struct {
	logger hclog.Logger

	mu      sync.Mutex
	known   map[string]guarded // of all leased tasks that live
	pending []guarded
	closed  bool
	wake    chan struct{}
	done    chan struct{}

	pipe *os.File // to the process, nil without one
}

func newGuard(logger hclog.Logger) *guard {
	g := &guard{logger: logger, known: map[string]guarded{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go g.run()
	return g
}

// tell hands in news of a task. It does not block.
func (g *guard) tell(news guarded) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		if news.told != nil {
			close(news.told)
		}
		return
	}
	if news.Gone {
		delete(g.known, news.Task.ID)
	} else {
		g.known[news.Task.ID] = news
	}
	g.pending = append(g.pending, news)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *guard) run() {
	defer close(g.done)
	for range g.wake {
		g.mu.Lock()
		batch, closed := g.pending, g.closed
		g.pending = nil
		g.mu.Unlock()
		var waiting []chan struct{}
		for _, news := range batch {
			if news.told != nil {
				waiting = append(waiting, news.told)
			}
		}
		if closed {
			for _, ch := range waiting {
				close(ch)
			}
			break
		}
		if g.pipe == nil { // a new process has to hear of all
			batch = g.all()
		}
		if len(batch) > 0 && !g.send(batch) {
			g.send(g.all()) // once more, with a new process
		}
		for _, ch := range waiting {
			close(ch)
		}
	}
	if g.pipe != nil {
		g.pipe.Close()
	}
}

// all is what a new process has to know.
func (g *guard) all() []guarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []guarded
	for _, t := range g.known {
		out = append(out, t)
	}
	return out
}

// tellAndWait hands in news and waits until the guard has it: its pipe outlives the supervisor.
func (g *guard) tellAndWait(news guarded) {
	news.told = make(chan struct{})
	g.tell(news)
	<-news.told
}

// send writes news, to a new process if need be.
func (g *guard) send(batch []guarded) bool {
	if g.pipe == nil {
		if err := g.start(); err != nil {
			g.logger.Error("cannot start the guard of leased tasks", "error", err)
			return false
		}
	}
	for _, news := range batch {
		_ = g.pipe.SetWriteDeadline(time.Now().Add(guardTimeout))
		if err := writeMessage(g.pipe, &news); err != nil {
			g.logger.Warn("guard of leased tasks is gone", "error", err)
			g.pipe.Close()
			g.pipe = nil
			return false
		}
	}
	return true
}

// start makes the process. It is waited for with all other children.
func (g *guard) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return err
	}
	defer null.Close()
	_, err = syscall.ForkExec("/proc/self/exe", []string{"nomadlite", "supervisor", "-guard"}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), os.Stderr.Fd(), r.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		w.Close()
		return err
	}
	g.pipe = w
	return nil
}

// close ends the process too: nothing that is leased may be left.
func (g *guard) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	<-g.done
}
