package supervisor

import (
	"sync"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/logs"
)

// pump moves one kind of a task's output from its FIFO to its files.
type pump struct {
	logger hclog.Logger
	poller *poller
	fifo   int

	mu     sync.Mutex
	files  *logs.Rotator
	failed bool // told of in the log
	closed bool
}

// newPump opens FIFO and files and begins to move.
func newPump(p *poller, logger hclog.Logger, fifo string, maxFiles int, maxBytes int64) (*pump, error) {
	fd, err := logs.OpenFIFO(fifo, false)
	if err != nil {
		return nil, err
	}
	files, err := logs.NewRotator(fifo, maxFiles, maxBytes)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	pu := &pump{logger: logger.With("fifo", fifo), poller: p, fifo: fd, files: files}
	if err := p.add(fd, pu.readable); err != nil {
		unix.Close(fd)
		files.Close()
		return nil, err
	}
	return pu, nil
}

// readable is called by the poller's loop.
func (p *pump) readable(buf []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.drain(drainBudget, buf)
}

// drain moves what there is. When it cannot be written (a full disk, say) it is thrown away, so that the task does
// not hang in its next write for ever.
func (p *pump) drain(budget int, buf []byte) bool {
	_, empty, err := p.files.Drain(p.fifo, budget, buf)
	if err == nil {
		p.failed = false
		return empty
	}
	if !p.failed {
		p.failed = true
		p.logger.Error("output of task is lost", "error", err)
	}
	n, err := unix.Read(p.fifo, buf)
	return n <= 0 || err != nil
}

// finish moves what is left, once all writers are gone, and closes.
func (p *pump) finish() {
	p.poller.remove(p.fifo)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	buf := make([]byte, 4096)
	// A FIFO holds at most 1 MiB; more can only come from a writer that escaped us.
	for i := 0; i < 512 && !p.drain(drainBudget, buf); i++ {
	}
	p.files.Close()
	unix.Close(p.fifo)
}
