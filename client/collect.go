package client

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/gc"
	"github.com/nomadlite/nomadlite/structs"
)

// collect removes what ended allocations left, when there is too much of it.
func (c *Client) collect(ctx context.Context) {
	for pause(ctx, c.cfg.GCInterval, c.wakeGC) {
		c.forgetVanished(ctx)
		for ctx.Err() == nil && c.collectOnce(ctx, false) {
		}
	}
}

// collectOnce removes what the rules choose, and says whether to look again.
func (c *Client) collectOnce(ctx context.Context, everything bool) bool {
	candidates, tracked := c.candidates()
	measure := gc.Measure{Tracked: tracked, Everything: everything}
	measure.DiskUsed, measure.InodesUsed = usage(c.cfg.AllocDir)
	ids, reason := gc.Choose(c.cfg.GC, measure, candidates)
	if len(ids) == 0 {
		return false
	}
	c.log.Debug("removing ended allocations", "count", len(ids), "reason", reason)
	var wait sync.WaitGroup
	slots := make(chan struct{}, c.cfg.GC.ParallelDestroys)
	for _, id := range ids {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			c.destroy(ctx, id)
		})
	}
	wait.Wait()
	after, _ := c.candidates()
	return !everything && len(after) < len(candidates) // none went: trying again at once helps nobody
}

// candidates are the ended allocations whose end the servers know.
func (c *Client) candidates() (list []gc.Candidate, tracked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, h := range c.held {
		if h.runner == nil {
			continue
		}
		tracked++
		if h.runner.Terminal() && h.reported != nil && isTerminal(h.reported.ObservedStatus) {
			list = append(list, gc.Candidate{ID: id, EndedAt: endedAt(h.reported)})
		}
	}
	return list, tracked
}

func isTerminal(status string) bool {
	return status == structs.AllocClientStatusComplete || status == structs.AllocClientStatusFailed
}

// usage of a directory's file system, in percent.
func usage(dir string) (disk, inodes float64) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0
	}
	if usable := st.Blocks - st.Bfree + st.Bavail; usable > 0 {
		disk = 100 * float64(st.Blocks-st.Bfree) / float64(usable)
	}
	if st.Files > 0 {
		inodes = 100 * float64(st.Files-st.Ffree) / float64(st.Files)
	}
	return disk, inodes
}

// CollectAll removes everything that ended allocations left (client/gc).
func (c *Client) CollectAll(ctx context.Context) { c.collectOnce(ctx, true) }

// CollectAlloc removes what one ended allocation left.
func (c *Client) CollectAlloc(ctx context.Context, id string) error {
	r, err := c.runner(id)
	if err != nil {
		return err
	}
	if !r.Terminal() {
		return structs.Errorf(structs.CodeInvalid, "allocation %s has not ended", id)
	}
	c.destroy(ctx, id)
	return nil
}
