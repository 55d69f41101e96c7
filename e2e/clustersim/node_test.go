package clustersim

import (
	"context"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// node is a machine: its disk and its supervisor's processes stay when its agent is killed.
type node struct {
	s     *sim
	id    string
	lease time.Duration
	boot  int
	disk  *disk
	sup   *supervisor
	agent *agent // nil while there is none
	cut   bool   // from the servers
	life  int    // counts agents
}

const maxKillTimeout = 30 * time.Second

func (s *sim) addNode(id string, lease time.Duration) *node {
	n := &node{s: s, id: id, lease: lease}
	n.disk = newDisk()
	n.sup = &supervisor{s: s, n: n, procs: map[string]*process{}, ran: map[string]bool{}}
	s.nodes = append(s.nodes, n)
	s.byID[id] = n
	return n
}

func (n *node) clock() boottime.Clock {
	return boottime.Fake{ID: fmt.Sprintf("%s-boot-%d", n.id, n.boot)}
}

// describe is what the node says about itself.
func (n *node) describe() *structs.Node {
	d := &structs.Node{
		ID: n.id, Name: n.id, Datacenter: "dc1", NodePool: structs.NodePoolDefault, SecretID: "secret-" + n.id,
		Attributes: map[string]string{"kernel.name": "linux", "driver.mock_driver": "1", "unique.hostname": n.id},
		Drivers:    map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4},
			Memory: structs.NodeMemoryResources{MemoryMB: 8192}, Disk: structs.NodeDiskResources{DiskMB: 100 * 1024},
			Networks: []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: "192.168.0.100"}},
		},
		Lease: n.lease, MaxKillTimeout: maxKillTimeout, Status: structs.NodeStatusInit,
	}
	d.Canonicalize()
	d.ComputeClass()
	return d
}

// disk keeps what an agent writes. Writes become durable in their order, when it is flushed.
type disk struct {
	pending []func()
	allocs  map[string]*structs.Allocation
	jobs    map[string]*structs.Job
	runs    map[string]*allocrunner.Local
	tasks   map[string]*taskrunner.Local
	lease   lease.Moment
}

func newDisk() *disk {
	return &disk{allocs: map[string]*structs.Allocation{}, jobs: map[string]*structs.Job{},
		runs: map[string]*allocrunner.Local{}, tasks: map[string]*taskrunner.Local{}}
}

func (d *disk) write(f func()) { d.pending = append(d.pending, f) }

// flush says whether there was anything to write.
func (d *disk) flush() bool {
	some := len(d.pending) > 0
	for len(d.pending) > 0 {
		f := d.pending[0]
		d.pending = d.pending[1:]
		f()
	}
	return some
}

// again reads a value as the next agent does.
func again[T any](v *T) *T {
	data, err := codec.Marshal(v)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := codec.Unmarshal(data, out); err != nil {
		panic(err)
	}
	return out
}

// agentStore is the runners' view of the disk.
type agentStore struct{ a *agent }

func (s agentStore) SaveRun(id string, l *allocrunner.Local, done func(error)) {
	row := *l
	s.a.n.disk.write(func() {
		s.a.n.disk.runs[id] = &row
		done(nil)
	})
}

func (s agentStore) SaveTask(id, task string, l *taskrunner.Local, done func(error)) {
	row := *l
	s.a.n.disk.write(func() {
		s.a.n.disk.tasks[id+"/"+task] = &row
		done(nil)
	})
}

// next is when the node has something to do by itself.
func (n *node) next() time.Time {
	next := n.sup.next()
	if a := n.agent; a != nil {
		for _, t := range []time.Time{a.wakeAt, a.leaseAt} {
			if !t.IsZero() && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}

func (n *node) due() bool {
	if a := n.agent; a != nil && (a.dirty || len(n.disk.pending) > 0) {
		return true
	}
	next := n.next()
	return !next.IsZero() && !next.After(time.Now())
}

// turn lets everything on the node go on that can.
func (n *node) turn() {
	n.sup.advance()
	if a := n.agent; a != nil {
		a.turn()
	}
}

// start begins an agent, as after a boot or when the one before was killed.
func (n *node) start() {
	n.life++
	n.agent = newAgent(n)
	n.s.tracef("%s: an agent begins", n.id)
	n.agent.begin()
}

// kill ends the agent at once: what was not written yet is lost.
func (n *node) kill() {
	a := n.agent
	n.agent = nil
	n.disk.pending = nil
	a.end()
	n.disk.pending = nil // what those wrote that saw the end
}

// end lets all goroutines of the agent end, those included that wait for what is never written.
func (a *agent) end() {
	a.cancel()
	synctest.Wait()
	for _, id := range sortedKeys(a.held) {
		if r := a.held[id].runner; r != nil {
			r.Run(a.ctx)
		}
	}
	synctest.Wait()
}

// crash ends the machine.
func (n *node) crash() {
	if n.agent != nil {
		n.kill()
	}
	n.sup.crash()
	n.boot++
}

// reclaim ends the processes that no runner accounts for.
func (a *agent) reclaim() {
	for _, p := range a.n.sup.sorted() {
		parts := strings.Split(p.id, "/")
		var attempt uint64
		fmt.Sscan(parts[2], &attempt)
		if h := a.held[parts[0]]; h == nil || h.runner == nil || h.runner.Terminal() || !h.runner.Attempt(parts[1], attempt) {
			a.s.tracef("%s: nobody accounts for process %s", a.n.id, p.id)
			_ = a.n.sup.Destroy(context.Background(), p.id, true)
			synctest.Wait()
		}
	}
}
