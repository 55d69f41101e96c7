package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/scheduler/sim"
	"github.com/nomadlite/nomadlite/structs"
)

const simHelp = `Plays what-if with the scheduler, without a cluster: nothing is asked of any server and nothing is changed.
<file> describes a cluster in HCL or JSON (see docs/scheduling.md), or is one that was recorded: a data_dir of a server, or
the state.bin of a raft snapshot, packed as .tar.gz or not, or a file of operator snapshot save.

What the flags -add-nodes, -lose, -return, -drain, -stop, -scale and -run say happens after the file's own events, one after the
other in the order of the command line. Then the utilisation before and after is shown, and everything that found no
place with the reason. The same file, flags and -seed give the same outcome.

Nodes are selected by NAME=VALUE: node=, id=, class=, datacenter=, pool=, attr.NAME=, or a name of their metadata such as
rack=r1; several joined by commas must all hold.`

// simFlags are the flags of operator sim.
type simFlags struct {
	seed   uint64
	asJSON bool
	strict bool
	vars   list
	steps  []simStep
}

// simStep is one what-if of the command line; its event is made when its turn comes.
type simStep struct {
	name string
	make func(*simWorld) (sim.Event, error)
}

func (f *simFlags) declare(fs *flag.FlagSet) {
	fs.Uint64Var(&f.seed, "seed", 1, "`NUMBER` by which equal nodes are chosen from.")
	fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
	fs.BoolVar(&f.strict, "fail-unplaced", false, "Exit with code 2 when something has no place in the end.")
	fs.Var(&f.vars, "var", "`NAME=VALUE` of an input variable of the jobspecs; may be repeated.")
	add := func(name, usage string, read func(text string) (func(*simWorld) (sim.Event, error), error)) {
		fs.Func(name, usage+"; may be repeated.", func(text string) error {
			event, err := read(text)
			if err == nil {
				f.steps = append(f.steps, simStep{name + " " + text, event})
			}
			return err
		})
	}
	add("add-nodes", "Add nodes: `CLASS=N`", func(text string) (func(*simWorld) (sim.Event, error), error) {
		class, n, err := countOf(text)
		return func(w *simWorld) (sim.Event, error) {
			nodes, err := w.add(class, n)
			return sim.Event{AddNodes: nodes}, err
		}, err
	})
	for _, row := range []struct {
		name, usage string
		event       func(selector string) sim.Event
	}{
		{"lose", "Lose the nodes that the `SELECTOR` names", func(s string) sim.Event { return sim.Event{Lose: []string{s}} }},
		{"return", "Bring the lost nodes back that the `SELECTOR` names", func(s string) sim.Event { return sim.Event{Return: []string{s}} }},
		{"drain", "Empty the nodes that the `SELECTOR` names", func(s string) sim.Event { return sim.Event{Drain: []string{s}} }},
	} {
		add(row.name, row.usage, func(text string) (func(*simWorld) (sim.Event, error), error) {
			_, err := sim.Selector(text)
			return func(*simWorld) (sim.Event, error) { return row.event(text), nil }, err
		})
	}
	add("stop", "Stop the `JOB`", func(text string) (func(*simWorld) (sim.Event, error), error) {
		return func(*simWorld) (sim.Event, error) { return sim.Event{Stop: []string{text}}, nil }, nil
	})
	add("scale", "Change a count: `JOB[/GROUP]=N`", func(text string) (func(*simWorld) (sim.Event, error), error) {
		target, n, err := countOf(text)
		return func(w *simWorld) (sim.Event, error) { return sim.Event{Scale: []sim.Scale{w.scale(target, n)}}, nil }, err
	})
	add("run", "Run the jobspec at `PATH`", func(text string) (func(*simWorld) (sim.Event, error), error) {
		return func(w *simWorld) (sim.Event, error) {
			job, err := w.jobspec(text, "")
			return sim.Event{Run: []*structs.Job{job}}, err
		}, nil
	})
}

func countOf(text string) (string, int, error) {
	name, number, ok := strings.Cut(text, "=")
	n, err := strconv.Atoi(number)
	if !ok || name == "" || err != nil || n < 0 {
		return "", 0, fmt.Errorf("expected NAME=NUMBER, got %q", text)
	}
	return name, n, nil
}

// maxSimNodes is how many nodes of one class may be described and added: more would fill the memory before anything else.
const maxSimNodes = 1_000_000

func operatorSim() *spec {
	return &spec{name: "operator sim", args: "<file>", synopsis: "Play what-if with the scheduler", help: simHelp, minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &simFlags{}
			f.declare(fs)
			return func(ctx context.Context, c *call) error {
				report, err := f.simulate(ctx, c)
				if err != nil {
					return err
				}
				if f.asJSON {
					text, err := json.MarshalIndent(report, "", "  ")
					if err != nil {
						return fmt.Errorf("format report: %w", err)
					}
					c.printf("%s\n", text)
				} else {
					c.printf("%s", report.text())
				}
				if f.strict && len(report.Unplaced) > 0 {
					return &exitError{code: 2}
				}
				return nil
			}
		}}
}

// simWorld is a simulation and where its nodes and jobs come from.
type simWorld struct {
	sim    *sim.Sim
	events []sim.Event
	// makeNodes gives n more nodes of a class.
	makeNodes func(class string, n int) ([]*structs.Node, error)
	added     map[string]int // nodes of each class so far
	vars      []string
	env       []string
}

// preparedSim is a world whose events are still to be made.
type preparedSim struct {
	*simWorld
	prepare func(*simWorld) error
}

func (w *simWorld) add(class string, n int) ([]*structs.Node, error) {
	if n < 0 || n > maxSimNodes-w.added[class] {
		return nil, fmt.Errorf("there are from 0 to %d nodes of a class (class %q gets %d more)", maxSimNodes, class, n)
	}
	nodes, err := w.makeNodes(class, n)
	if err != nil {
		return nil, err
	}
	w.added[class] += n
	return nodes, nil
}

// scale reads JOB or JOB/GROUP; a job whose id has slashes is taken for one when no group is named so.
func (w *simWorld) scale(target string, n int) sim.Scale {
	if w.sim.HasJob(target) {
		return sim.Scale{Job: target, Count: n}
	}
	if i := strings.LastIndexByte(target, '/'); i >= 0 {
		return sim.Scale{Job: target[:i], Group: target[i+1:], Count: n}
	}
	return sim.Scale{Job: target, Count: n}
}

// jobspec reads a jobspec; its path is relative to folder.
func (w *simWorld) jobspec(path, folder string) (*structs.Job, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read jobspec: %w", err)
	}
	return w.parse(path, body)
}

// parse reads the text of a jobspec.
func (w *simWorld) parse(path string, body []byte) (*structs.Job, error) {
	result, err := jobspec.Parse(jobspec.Config{Path: path, Body: body, BaseDir: filepath.Dir(path), AllowFS: true,
		Vars: w.vars, Env: w.env})
	if err != nil {
		return nil, err
	}
	return result.Job, nil
}

// simReport is what a simulation came to.
type simReport struct {
	Seed     uint64
	Before   []sim.Usage `json:",omitempty"` // before what the flags say, or without flags before the file's events
	After    []sim.Usage
	Steps    []*sim.Step
	Unplaced []sim.Unplaced
}

func (f *simFlags) simulate(ctx context.Context, c *call) (*simReport, error) {
	opened, err := openSim(c.args[0], f.seed)
	if err != nil {
		return nil, err
	}
	w := opened.simWorld
	w.vars, w.env = f.vars, c.environ
	if err := opened.prepare(w); err != nil {
		return nil, err
	}
	report := &simReport{Seed: f.seed, Steps: []*sim.Step{}, Unplaced: []sim.Unplaced{}}
	play := func(e sim.Event, what string) error {
		step, err := w.sim.Do(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		report.Steps = append(report.Steps, step)
		report.After, report.Unplaced = w.sim.Usage(), step.Unplaced
		return nil
	}
	for i, e := range w.events {
		if i == 1 && len(f.steps) == 0 {
			report.Before = report.After
		}
		if err := play(e, fmt.Sprintf("%s: event %q", c.args[0], e.Name)); err != nil {
			return nil, err
		}
	}
	for i, step := range f.steps {
		if i == 0 {
			report.Before = report.After
		}
		e, err := step.make(w)
		if err != nil {
			return nil, fmt.Errorf("-%s: %w", step.name, err)
		}
		e.Name = step.name
		if err := play(e, "-"+step.name); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// simStart is when described clusters begin: the time of day has no part in the outcome.
func simStart() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }
