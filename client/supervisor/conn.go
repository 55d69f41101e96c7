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
	c := &conn{net: nc, waiting: map[uint64]chan *response{}, done: make(chan struct{})}
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
		ch := c.waiting[resp.ID]
		delete(c.waiting, resp.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- resp
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

// call sends a request and waits for its answer. A refusal is returned as *refusal, errLost when the supervisor went.
func (c *conn) call(ctx context.Context, req request) (*response, error) {
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
	select {
	case resp, ok := <-ch:
		switch {
		case !ok:
			return nil, errLost
		case resp.Code == codeClosing:
			return nil, errLost
		case resp.Code != "":
			return nil, &refusal{resp.Code, resp.Error}
		}
		return resp, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, req.ID)
		c.mu.Unlock()
		return nil, ctx.Err()
	}
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
