package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// errLost means that the supervisor went away before it answered.
var errLost = errors.New("connection to supervisor lost")

// helloTimeout is how long a supervisor that accepts may take to introduce itself.
const helloTimeout = 5 * time.Second

// conn is the agent's connection to one supervisor: any number of requests at a time, one goroutine.
type conn struct {
	net   net.Conn
	hello Hello

	writing sync.Mutex

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan *response
	late    map[uint64]string // tasks whose start was not answered in time: one that comes after all is ended
	dead    bool
	done    chan struct{} // closed when dead
	onEnd   func()        // called then
}

// dial connects to a supervisor's socket and learns who it is.
func dial(ctx context.Context, dir, name string) (*conn, error) {
	base, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("connect to supervisor: %w", err)
	}
	defer base.Close()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", socketPath(base, name))
	if err != nil {
		return nil, fmt.Errorf("connect to supervisor %s: %w", name, err)
	}
	c := &conn{net: nc, waiting: map[uint64]chan *response{}, late: map[uint64]string{}, done: make(chan struct{})}
	go c.read()
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	resp, err := c.call(ctx, request{Op: opHello, Version: ProtocolVersion})
	if err == nil && resp.Hello == nil {
		err = errors.New("it does not say who it is")
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("connect to supervisor %s: %w", name, err)
	}
	c.hello = *resp.Hello
	return c, nil
}

// read hands answers to those who wait, until the connection ends.
func (c *conn) read() {
	r := bufio.NewReader(c.net)
	for {
		resp := new(response)
		if err := readMessage(r, resp); err != nil {
			break
		}
		c.mu.Lock()
		ch, task := c.waiting[resp.ID], c.late[resp.ID]
		delete(c.waiting, resp.ID)
		delete(c.late, resp.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- resp
		}
		if task != "" && resp.Task != nil {
			go c.endLate(task)
		}
	}
	c.net.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	close(c.done)
	if c.onEnd != nil {
		c.onEnd()
	}
	for id, ch := range c.waiting {
		delete(c.waiting, id)
		close(ch)
	}
}

// answerLimit bounds a call that is answered at once; actLimit is for those which first start, or end, processes.
const (
	answerLimit = 10 * time.Second
	actLimit    = 30 * time.Second
)

// limit is how long the answer to a request may take; 0 for ever.
func (r *request) limit() time.Duration {
	switch r.Op {
	case opWait:
		return 0
	case opStop:
		return r.Timeout + actLimit
	case opStart, opDestroy:
		return actLimit
	}
	return answerLimit
}

// frozen says that the supervisor's process was stopped, as by SIGSTOP: it answers nothing until it is continued.
func (c *conn) frozen() bool { return frozen(c.hello.PID) }

func (c *conn) silent(op, why string) error {
	return fmt.Errorf("%w to %q: supervisor %s (process %d) %s", ErrSilent, op, c.hello.Name, c.hello.PID, why)
}

// endLate ends a task that was started after nobody waited for it any more.
func (c *conn) endLate(task string) {
	ctx, cancel := context.WithTimeout(context.Background(), actLimit)
	defer cancel()
	_, _ = c.call(ctx, request{Op: opDestroy, TaskID: task, Force: true}) // else the next agent finds it, and no record of it
}

// call sends a request and waits for its answer. A refusal is returned as *refusal, errLost when the supervisor went,
// ErrSilent when it does not answer.
func (c *conn) call(ctx context.Context, req request) (*response, error) {
	if c.frozen() {
		return nil, c.silent(req.Op, "is stopped")
	}
	ch := make(chan *response, 1)
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return nil, errLost
	}
	c.next++
	req.ID = c.next
	c.waiting[req.ID] = ch
	c.mu.Unlock()

	c.writing.Lock()
	c.net.SetWriteDeadline(time.Now().Add(writeTimeout))
	err := writeMessage(c.net, req)
	c.writing.Unlock()
	if err != nil {
		c.net.Close() // the reader tells everybody
	}
	var due <-chan time.Time
	if limit := req.limit(); limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case resp, ok := <-ch:
		return answered(resp, ok)
	case <-due:
		if c.giveUp(&req) {
			return nil, c.silent(req.Op, fmt.Sprintf("hangs, it was given %s", req.limit()))
		}
	case <-ctx.Done():
		if c.giveUp(&req) {
			return nil, ctx.Err()
		}
	}
	resp, ok := <-ch // it has come at that very moment, and a start that nobody hears of would run on
	return answered(resp, ok)
}

// answered tells what an answer means; ok is false when the supervisor went instead.
func answered(resp *response, ok bool) (*response, error) {
	switch {
	case !ok || resp.Code == codeClosing:
		return nil, errLost
	case resp.Code != "":
		return nil, &refusal{resp.Code, resp.Error}
	}
	return resp, nil
}

// giveUp forgets a request; what a start still brings about is ended. It is false when the answer has come.
func (c *conn) giveUp(req *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.waiting[req.ID]; !waits {
		return false
	}
	delete(c.waiting, req.ID)
	if req.Op == opStart {
		c.late[req.ID] = req.Start.TaskID
	}
	return true
}

// close ends the connection and waits for its goroutine.
func (c *conn) close() {
	c.net.Close()
	<-c.done
}

func (c *conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead
}
