package client

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/internal/uuid"
)

const (
	// reclaimLimit bounds how long a starting agent waits for the end of processes that nobody accounts for.
	reclaimLimit = 15 * time.Second
	// ownerFile names, in alloc_dir, the node whose allocations lie there.
	ownerFile = ".node-id"
)

// reclaim ends the supervisor's tasks that this agent's records do not tell of: their records were lost or damaged.
// It comes before anything is started, so that a new start does not meet them.
func (c *Client) reclaim(ctx context.Context) {
	if !c.supervisor.Left() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reclaimLimit)
	defer cancel()
	tasks, err := c.supervisor.List(ctx)
	if err != nil { // those that answer are heard all the same
		c.log.Error("supervisor does not tell what an earlier agent left", "error", err)
	}
	for _, file := range c.supervisor.Damaged() {
		c.log.Error("the record of a task was damaged: supervisor.log beside it tells what became of its processes", "record", file)
	}
	var wait sync.WaitGroup
	for _, t := range tasks {
		if c.accountsFor(t.ID) {
			continue
		}
		c.log.Warn("ending a task that no record tells of", "task", t.ID, "pid", t.PID, "running", t.Running)
		wait.Go(func() {
			if err := c.supervisor.Destroy(ctx, t.ID, true); err != nil && !errors.Is(err, supervisor.ErrNotFound) {
				c.log.Error("task is not ended", "task", t.ID, "error", err)
			}
		})
	}
	wait.Wait()
}

// accountsFor says whether a task of the supervisor, "<alloc>/<task>/<attempt>", is one that a runner takes over.
func (c *Client) accountsFor(taskID string) bool {
	alloc, rest, _ := strings.Cut(taskID, "/")
	i := strings.LastIndexByte(rest, '/')
	if i < 0 {
		return false
	}
	attempt, err := strconv.ParseUint(rest[i+1:], 10, 64)
	if err != nil {
		return false
	}
	runner, err := c.runner(alloc)
	return err == nil && !runner.Terminal() && runner.Attempt(rest[:i], attempt)
}

// own says whether the allocations in alloc_dir are all this node's, and marks an empty one as such.
func (c *Client) own() bool {
	path := filepath.Join(c.cfg.AllocDir, ownerFile)
	data, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(data)) == c.nodeID
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	entries, err := os.ReadDir(c.cfg.AllocDir)
	if err != nil {
		return false
	}
	if err := os.WriteFile(path, []byte(c.nodeID+"\n"), 0o600); err != nil {
		c.log.Debug("alloc_dir is not marked as this node's", "error", err)
	}
	return len(entries) == 0
}

// sweep removes directories, and what is mounted in them, of allocations which neither the servers nor this node know
// any more. It comes once, when the servers have said what they assign.
func (c *Client) sweep() {
	if !c.owns {
		return
	}
	entries, err := os.ReadDir(c.cfg.AllocDir)
	if err != nil {
		c.log.Warn("alloc_dir cannot be read", "error", err)
		return
	}
	c.mu.Lock()
	keep := make(map[string]bool, 2*len(c.held))
	for id, h := range c.held {
		keep[id], keep[h.alloc.PreviousAllocation] = true, true
	}
	c.mu.Unlock()
	for _, e := range entries {
		if id := e.Name(); e.IsDir() && !keep[id] && uuid.Valid(id) {
			c.log.Warn("removing the directory of an allocation that nobody knows any more", "alloc", id)
			if err := allocdir.New(c.cfg.AllocDir, id).Destroy(); err != nil {
				c.log.Warn("directory is not removed", "alloc", id, "error", err)
			}
		}
	}
}
