package command

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/scheduler/sim"
	"github.com/nomadlite/nomadlite/structs"
)

// simFile is a described cluster.
type simFile struct {
	Scheduler *simScheduler `hcl:"scheduler,block"`
	Pools     []*simPool    `hcl:"node_pool,block"`
	Nodes     []*simNodes   `hcl:"node,block"`
	Run       []string      `hcl:"run,optional"`
	Jobs      []simInline   `hcl:"job,block"`
	Events    []*simEvent   `hcl:"event,block"`
}

// simScheduler is the scheduler's configuration.
type simScheduler struct {
	Algorithm string   `hcl:"algorithm,optional"`
	Memory    bool     `hcl:"memory_oversubscription,optional"`
	Preempt   []string `hcl:"preempt,optional"` // types of jobs; system when it is not there
}

// simPool is a node pool.
type simPool struct {
	Name      string `hcl:"name,label"`
	Algorithm string `hcl:"algorithm,optional"`
	Memory    *bool  `hcl:"memory_oversubscription,optional"`
}

// simNodes is a class of nodes. Expressions may use index, the number of the node in its class, and class.
type simNodes struct {
	Class       string         `hcl:"class,label"`
	Count       int            `hcl:"count"`
	Name        hcl.Expression `hcl:"name,optional"`
	Datacenter  hcl.Expression `hcl:"datacenter,optional"`
	Pool        string         `hcl:"node_pool,optional"`
	CPU         int            `hcl:"cpu"`           // MHz
	Memory      int            `hcl:"memory"`        // MB
	Disk        int            `hcl:"disk,optional"` // MB
	Cores       int            `hcl:"cores,optional"`
	MaxAllocs   int            `hcl:"max_allocs,optional"`
	Attributes  hcl.Expression `hcl:"attributes,optional"`
	Meta        hcl.Expression `hcl:"meta,optional"`
	Drivers     []string       `hcl:"drivers,optional"`
	HostVolumes []string       `hcl:"host_volumes,optional"`
}

// simInline is a job in the file; its text is read as a jobspec.
type simInline struct {
	ID   string   `hcl:"id,label"`
	Body hcl.Body `hcl:",remain"`
}

// simEvent is something that happens.
type simEvent struct {
	Name   string         `hcl:"name,label"`
	Add    map[string]int `hcl:"add_nodes,optional"`
	Return []string       `hcl:"return,optional"`
	Lose   []string       `hcl:"lose,optional"`
	Drain  []string       `hcl:"drain,optional"`
	Stop   []string       `hcl:"stop,optional"`
	Scale  map[string]int `hcl:"scale,optional"`
	Run    []string       `hcl:"run,optional"`
	Jobs   []simInline    `hcl:"job,block"`
}

// simSource is a file that is being read.
type simSource struct {
	path  string
	body  []byte
	file  *hcl.File
	names map[string]bool // of the nodes so far
	simFile
}

func (s *simSource) fault(diags hcl.Diagnostics) error {
	return &jobspec.Error{Diags: diags, Files: map[string]*hcl.File{s.path: s.file}}
}

// describedSim reads a cluster that is described in HCL, or in JSON as HCL has it.
func describedSim(path string, body []byte, seed uint64) (*preparedSim, error) {
	s := &simSource{path: path, body: body, names: map[string]bool{}}
	var diags hcl.Diagnostics
	if jobspec.IsJSON(body) {
		s.file, diags = hclparse.NewParser().ParseJSON(body, path)
	} else if fault := jobspec.Unreadable(body, path); fault != nil {
		diags = hcl.Diagnostics{fault}
	} else {
		s.file, diags = hclparse.NewParser().ParseHCL(body, path)
	}
	if diags.HasErrors() {
		return nil, s.fault(diags)
	}
	if diags = gohcl.DecodeBody(s.file.Body, nil, &s.simFile); diags.HasErrors() {
		return nil, s.fault(diags)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	cfg := sim.Config{Seed: seed, Now: simStart(), Scheduler: s.schedulerConfig()}
	for _, p := range s.Pools {
		cfg.Pools = append(cfg.Pools, &structs.NodePool{Name: p.Name, SchedulerConfiguration: &structs.NodePoolSchedulerConfiguration{
			SchedulerAlgorithm: p.Algorithm, MemoryOversubscriptionEnabled: p.Memory}})
	}
	w := &simWorld{sim: sim.New(cfg), added: map[string]int{}}
	w.makeNodes = func(class string, n int) ([]*structs.Node, error) { return s.makeNodes(class, w.added[class], n) }
	return &preparedSim{simWorld: w, prepare: s.prepare}, nil
}

// check looks at what the blocks say by themselves.
func (s *simSource) check() error {
	seen := map[string]bool{}
	for _, n := range s.Nodes {
		switch {
		case seen[n.Class]:
			return s.wrong("node", n.Class, "there are two blocks of this class")
		case n.Count < 0 || n.CPU < 0 || n.Memory < 0 || n.Disk < 0 || n.Cores < 0 || n.MaxAllocs < 0:
			return s.wrong("node", n.Class, "numbers must not be negative")
		case n.Count > maxSimNodes:
			return s.wrong("node", n.Class, fmt.Sprintf("count is above %d", maxSimNodes))
		}
		seen[n.Class] = true
	}
	algorithm := func(block, label, name string) error {
		if name != "" && name != "binpack" && name != "spread" {
			return s.wrong(block, label, fmt.Sprintf("algorithm is %q, expected binpack or spread", name))
		}
		return nil
	}
	for _, p := range s.Pools {
		if err := algorithm("node_pool", p.Name, p.Algorithm); err != nil {
			return err
		}
	}
	if s.Scheduler == nil {
		return nil
	}
	for _, kind := range s.Scheduler.Preempt {
		if !slices.Contains([]string{"service", "batch", "system", "sysbatch"}, kind) {
			return s.wrong("scheduler", "", fmt.Sprintf("preempt names %q, expected service, batch, system or sysbatch", kind))
		}
	}
	return algorithm("scheduler", "", s.Scheduler.Algorithm)
}

// wrong is a fault of a block, with its place when the file is in HCL.
func (s *simSource) wrong(block, label, why string) error {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: strings.TrimSpace(block + " " + label),
		Detail: strings.ToUpper(why[:1]) + why[1:] + "."}
	for _, b := range s.blocks() {
		if b.Type == block && (label == "" || slices.Equal(b.Labels, []string{label})) {
			d.Subject = b.DefRange().Ptr()
		}
	}
	return s.fault(hcl.Diagnostics{d})
}

// blocks are the blocks of a file in HCL, nil of one in JSON.
func (s *simSource) blocks() hclsyntax.Blocks {
	if body, ok := s.file.Body.(*hclsyntax.Body); ok {
		return body.Blocks
	}
	return nil
}

func (s *simSource) schedulerConfig() *structs.SchedulerConfiguration {
	cfg := &structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack",
		PreemptionConfig: structs.PreemptionConfig{SystemSchedulerEnabled: true}}
	if s.Scheduler == nil {
		return cfg
	}
	if s.Scheduler.Algorithm != "" {
		cfg.SchedulerAlgorithm = s.Scheduler.Algorithm
	}
	cfg.MemoryOversubscriptionEnabled = s.Scheduler.Memory
	if kinds := s.Scheduler.Preempt; kinds != nil {
		cfg.PreemptionConfig = structs.PreemptionConfig{SystemSchedulerEnabled: slices.Contains(kinds, "system"),
			SysBatchSchedulerEnabled: slices.Contains(kinds, "sysbatch"), BatchSchedulerEnabled: slices.Contains(kinds, "batch"),
			ServiceSchedulerEnabled: slices.Contains(kinds, "service")}
	}
	return cfg
}

// prepare makes the events: the first one brings all nodes and the jobs that run from the beginning.
func (s *simSource) prepare(w *simWorld) error {
	begin := sim.Event{Name: "begin"}
	for _, n := range s.Nodes {
		nodes, err := w.add(n.Class, n.Count)
		if err != nil {
			return err
		}
		begin.AddNodes = append(begin.AddNodes, nodes...)
	}
	var err error
	if begin.Run, err = s.jobs(w, s.Run, len(s.Jobs), s.blocks()); err != nil {
		return err
	}
	w.events = append(w.events, begin)
	inEvents := slices.DeleteFunc(slices.Clone(s.blocks()), func(b *hclsyntax.Block) bool { return b.Type != "event" })
	for i, e := range s.Events {
		event := sim.Event{Name: e.Name, Return: e.Return, Lose: e.Lose, Drain: e.Drain, Stop: e.Stop}
		for _, class := range slices.Sorted(maps.Keys(e.Add)) {
			nodes, err := w.add(class, e.Add[class])
			if err != nil {
				return fmt.Errorf("%s: event %q: %w", s.path, e.Name, err)
			}
			event.AddNodes = append(event.AddNodes, nodes...)
		}
		for _, target := range slices.Sorted(maps.Keys(e.Scale)) {
			event.Scale = append(event.Scale, w.scale(target, e.Scale[target]))
		}
		var blocks hclsyntax.Blocks
		if i < len(inEvents) {
			blocks = inEvents[i].Body.Blocks
		}
		if event.Run, err = s.jobs(w, e.Run, len(e.Jobs), blocks); err != nil {
			return err
		}
		w.events = append(w.events, event)
	}
	return nil
}

// jobs reads the jobspecs at paths, relative to the file, and the job blocks among blocks.
func (s *simSource) jobs(w *simWorld, paths []string, inline int, blocks hclsyntax.Blocks) ([]*structs.Job, error) {
	var out []*structs.Job
	for _, path := range paths {
		job, err := w.jobspec(path, filepath.Dir(s.path))
		if err != nil {
			return nil, err
		}
		out = append(out, job)
	}
	for _, b := range blocks {
		if b.Type != "job" {
			continue
		}
		// Lines above it keep the positions in messages as they are in the file.
		rng := b.Range()
		text := append(bytes.Repeat([]byte("\n"), rng.Start.Line-1), bytes.Repeat([]byte(" "), rng.Start.Column-1)...)
		text = append(text, s.body[rng.Start.Byte:b.CloseBraceRange.End.Byte]...)
		job, err := w.parse(s.path, text)
		if err != nil {
			return nil, err
		}
		out = append(out, job)
		inline--
	}
	if inline > 0 {
		return nil, fmt.Errorf("%s: jobs cannot be described in a file in JSON: put each in a file of its own, and name that in run", s.path)
	}
	return out, nil
}
