package supervisor

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// poller is the one loop that waits for log FIFOs and for adopted processes: no goroutine per task.
type poller struct {
	logger hclog.Logger
	epoll  int
	wait   func(epfd int, events []unix.EpollEvent, msec int) (int, error)
	failed func(error) // called from the loop when it can go on no more
	wakeR  int

	mu  sync.Mutex
	fns map[int32]func(buf []byte)

	wakeW int
	done  chan struct{}
}

// drainBudget is how much of one task's output is moved before the next one gets its turn.
const drainBudget = 256 << 10

// rebuilds is how often in a row the loop tries to go on with a new epoll when the kernel refuses to wait.
const rebuilds = 3

func newPoller(logger hclog.Logger, failed func(error)) (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make poller: %w", err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make poller: %w", err)
	}
	p := &poller{logger: logger, wait: unix.EpollWait, failed: failed,
		epoll: fd, wakeR: pipe[0], wakeW: pipe[1], fns: map[int32]func([]byte){}, done: make(chan struct{})}
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, pipe[0], &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pipe[0])}); err != nil {
		p.free()
		return nil, fmt.Errorf("make poller: %w", err)
	}
	return p, nil
}

// add calls fn, from the loop, while fd is readable.
func (p *poller) add(fd int, fn func(buf []byte)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fns[int32(fd)] = fn
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		delete(p.fns, int32(fd))
		return fmt.Errorf("poll file: %w", err)
	}
	return nil
}

// remove takes fd out; the caller closes it afterwards. A call of its fn may still be under way.
func (p *poller) remove(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.fns[int32(fd)]; ok {
		delete(p.fns, int32(fd))
		unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

func (p *poller) run() {
	defer close(p.done)
	buf := make([]byte, 64<<10)
	events := make([]unix.EpollEvent, 64)
	faults := 0
	for {
		n, err := p.wait(p.epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			// Without this loop tasks hang in their output, and the end of adopted ones is not seen.
			faults++
			p.logger.Error("cannot wait for output of tasks, making a new poller", "error", err, "attempt", faults)
			if faults <= rebuilds {
				err = p.rebuild()
			}
			if err != nil {
				p.failed(fmt.Errorf("wait for output of tasks: %w", err))
				return
			}
			continue
		}
		faults = 0
		for _, e := range events[:n] {
			if int(e.Fd) == p.wakeR {
				return
			}
			p.mu.Lock()
			fn := p.fns[e.Fd]
			p.mu.Unlock()
			if fn != nil {
				fn(buf)
			}
		}
	}
}

// rebuild makes another epoll with all that the last one had.
func (p *poller) rebuild() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make poller: %w", err)
	}
	watched := []int{p.wakeR}
	for file := range p.fns {
		watched = append(watched, int(file))
	}
	var faults []error
	for _, file := range watched {
		event := &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(file)}
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, file, event); err != nil {
			faults = append(faults, fmt.Errorf("poll file %d: %w", file, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		unix.Close(fd)
		return err
	}
	unix.Close(p.epoll)
	p.epoll = fd
	return nil
}

// close ends the loop and waits for it.
func (p *poller) close() {
	unix.Write(p.wakeW, []byte{0})
	<-p.done
	p.free()
}

func (p *poller) free() {
	unix.Close(p.epoll)
	unix.Close(p.wakeR)
	unix.Close(p.wakeW)
}
