package supervisor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Left says whether there are supervisors, or what dead ones left behind. It connects to none.
func (c *Client) Left() bool {
	entries, err := os.ReadDir(c.cfg.Dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.IsDir() && strings.HasPrefix(e.Name(), dirPrefix)
	})
}

// dialAll connects to all supervisors there are. One that lives but does not answer yet is waited for: the agent that
// started it died meanwhile, and it may have taken the tasks of an earlier one over already. silent are those that did
// not answer in time, or are stopped and will not; those in skip were found to be so before, and are not waited for.
func (c *Client) dialAll(ctx context.Context, skip []string) (silent []string, err error) {
	limit, cancel := context.WithTimeout(ctx, c.cfg.FindLimit)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		starting, stopped, err := c.dialOnce(limit, skip)
		if err == nil && len(starting) == 0 {
			if len(stopped) > 0 {
				c.logger.Error("supervisors are stopped and do not answer: continue them (SIGCONT) or kill them", "names",
					strings.Join(stopped, ", "))
			}
			return slices.Concat(skip, stopped), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if limit.Err() != nil {
			c.logger.Error("supervisors live and do not answer", "names", strings.Join(starting, ", "))
			return slices.Concat(skip, stopped, starting), nil
		}
		if err != nil {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-limit.Done():
			timer.Stop()
		}
	}
}

// dialOnce connects to those that answer, and names those that live and do not, apart from those in skip.
func (c *Client) dialOnce(ctx context.Context, skip []string) (starting, stopped []string, err error) {
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list supervisors: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		c.mu.Lock()
		known := c.conns[name]
		c.mu.Unlock()
		if known != nil && known.alive() || !e.IsDir() || !strings.HasPrefix(name, dirPrefix) || !lives(name) ||
			slices.Contains(skip, name) {
			continue
		}
		if frozen(pidOf(name)) {
			stopped = append(stopped, name)
			continue
		}
		conn, err := dial(ctx, c.cfg.Dir, name)
		if err != nil {
			c.logger.Debug("supervisor does not answer", "error", err)
			starting = append(starting, name)
			continue
		}
		c.logger.Debug("found supervisor", "name", name, "pid", conn.hello.PID, "version", conn.hello.Version)
		if err := c.keep(name, conn); err != nil {
			return starting, stopped, err
		}
	}
	return starting, stopped, nil
}

// pidOf is the process for which a supervisor's directory is named, "s-<pid>-<start time>"; 0 for another name.
func pidOf(name string) int {
	pid, _, _ := strings.Cut(strings.TrimPrefix(name, dirPrefix), "-")
	n, _ := strconv.Atoi(pid)
	return n
}

// lives says whether the process for which a supervisor's directory is named, "s-<pid>-<start time>", is there.
func lives(name string) bool {
	_, tick, _ := strings.Cut(strings.TrimPrefix(name, dirPrefix), "-")
	p, err := readProcess(pidOf(name))
	return err == nil && strconv.FormatUint(p.startTick, 10) == tick && p.state != 'Z' && p.state != 'X'
}

// search looks for supervisors that came unnoticed, and says whether there were any. It is an error when one lives and
// does not answer: nobody can say then that a task does not exist.
func (c *Client) search(ctx context.Context) (found bool, err error) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	before, _, err := c.current()
	if err != nil {
		return false, err
	}
	silent, err := c.dialAll(ctx, nil)
	if err != nil {
		return false, err
	}
	after, _, err := c.current()
	if err == nil && len(after) <= len(before) && len(silent) > 0 {
		err = fmt.Errorf("ask supervisors: %w from %s", ErrSilent, strings.Join(silent, ", "))
	}
	return len(after) > len(before), err
}
