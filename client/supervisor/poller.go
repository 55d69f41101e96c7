package supervisor

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// poller is the one loop that waits for log FIFOs and for adopted processes: no goroutine per task.
type poller struct {
	epoll int
	wakeR int

	mu  sync.Mutex
	fns map[int32]func(buf []byte)

	wakeW int
	done  chan struct{}
}

// drainBudget is how much of one task's output is moved before the next one gets its turn.
const drainBudget = 256 << 10

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make poller: %w", err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make poller: %w", err)
	}
	p := &poller{epoll: fd, wakeR: pipe[0], wakeW: pipe[1], fns: map[int32]func([]byte){}, done: make(chan struct{})}
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
	for {
		n, err := unix.EpollWait(p.epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
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
