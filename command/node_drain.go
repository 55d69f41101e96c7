package command

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// defaultDrainDeadline is how long allocations may take to leave when nothing else is said.
const defaultDrainDeadline = time.Hour

type nodeDrainFlags struct {
	stopFlags
	enable, disable, force, noDeadline, ignoreSystem, keepIneligible, monitor, detach, self, yes bool
	message                                                                                      string
	deadline                                                                                     *string
	meta                                                                                         pairsFlag
}

// pairsFlag collects KEY=VALUE flags.
type pairsFlag map[string]string

// String is for package flag.
func (p pairsFlag) String() string { return "" }

// Set takes one more pair.
func (p *pairsFlag) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not KEY=VALUE", text)
	}
	if *p == nil {
		*p = pairsFlag{}
	}
	(*p)[key] = value
	return nil
}

func nodeDrain() *spec {
	return &spec{name: "node drain", args: "<node>", synopsis: "Empty a node, or stop doing so", client: true,
		help: `Lets the scheduler move what runs on a node elsewhere and keeps new work from it. Services leave as their migrate
block allows. Batch work may end by itself until the deadline; what is stopped then is not run again. System jobs are
stopped last. The command follows the drain until it is over; to interrupt it does not end the drain, -disable does.
A node may be given by prefix.

To empty a node at once in an emergency: -enable -force -immediate. The options of the stops may be given later to a
drain that goes on, by another -enable.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &nodeDrainFlags{}
			f.stopFlags.declare(fs)
			fs.BoolVar(&f.enable, "enable", false, "Begin to drain the node, or change a drain that goes on.")
			fs.BoolVar(&f.disable, "disable", false, "End the drain; the node may get allocations again.")
			fs.Func("deadline", "`DURATION` after which all that is left is stopped; the default is 1h.", func(text string) error {
				f.deadline = &text
				return nil
			})
			fs.BoolVar(&f.noDeadline, "no-deadline", false, "Wait for ever.")
			fs.BoolVar(&f.force, "force", false, "Stop all at once: as if the deadline had passed.")
			fs.BoolVar(&f.ignoreSystem, "ignore-system", false, "Leave system jobs on the node.")
			fs.BoolVar(&f.keepIneligible, "keep-ineligible", false, "With -disable: the node gets no allocations all the same.")
			fs.StringVar(&f.message, "m", "", "`MESSAGE` that is kept with the drain.")
			fs.Var(&f.meta, "meta", "`KEY=VALUE` that is kept with the drain; may be repeated.")
			fs.BoolVar(&f.monitor, "monitor", false, "Only follow the drain that goes on.")
			fs.BoolVar(&f.detach, "detach", false, "Return at once.")
			fs.BoolVar(&f.self, "self", false, "The node of the agent that is asked.")
			fs.BoolVar(&f.yes, "yes", false, "Do not ask when a prefix names the node.")
			return f.run
		}}
}

func (f *nodeDrainFlags) run(ctx context.Context, c *call) error {
	opts, err := f.options()
	if err != nil {
		return err
	}
	node, err := f.node(ctx, c)
	if err != nil || node == nil {
		return err
	}
	monitor := &drainMonitor{c: c, node: node}
	if f.monitor {
		if node.DrainStrategy == nil {
			c.printf("No drain strategy set for node %q\n", node.ID)
			return nil
		}
		if err := monitor.begin(ctx); err != nil {
			return err
		}
		monitor.tellWhatIsLeft()
		return monitor.follow(ctx)
	}
	if f.enable && !f.detach {
		if err := monitor.begin(ctx); err != nil {
			return err
		}
	}
	if _, _, err := c.client.Nodes().UpdateDrain(ctx, node.ID, *opts, nil); err != nil {
		return fmt.Errorf("error updating drain: %s", api.Text(err))
	}
	if f.disable {
		word := "set: eligible for scheduling"
		if f.keepIneligible {
			word = "left: ineligible for scheduling"
		}
		if node.DrainStrategy == nil {
			c.printf("Node %q was not draining; scheduling eligibility %s\n", node.ID, word)
		} else {
			c.printf("Node %q drain strategy unset; scheduling eligibility %s\n", node.ID, word)
		}
		return nil
	}
	c.printf("Node %q drain strategy set\n", node.ID)
	if f.detach {
		return nil
	}
	c.printf("Interrupt with Ctrl-C: that does not end the drain\n")
	return monitor.follow(ctx)
}

// node is that which is meant, nil when the user did not confirm it.
func (f *nodeDrainFlags) node(ctx context.Context, c *call) (*structs.Node, error) {
	id := ""
	switch {
	case f.self && len(c.args) > 0:
		return nil, fmt.Errorf("-self and a node cannot be used together")
	case f.self:
		agent, err := c.client.Agent().Self(ctx)
		if err != nil {
			return nil, fmt.Errorf("error querying agent: %s", api.Text(err))
		}
		id = agent.Stats["client"]["node_id"]
	case len(c.args) == 1:
		id = c.args[0]
	}
	if id == "" {
		return nil, fmt.Errorf("name a node, or use -self on a client agent")
	}
	node, err := c.node(ctx, id)
	if err != nil || node.ID == trimPrefix(id) || f.yes || f.monitor {
		return node, err
	}
	verb := "drain"
	if f.disable {
		verb = "end the drain of"
	}
	ok, err := c.confirm(fmt.Sprintf("Are you sure you want to %s node %q? [y/N] ", verb, node.ID))
	if err != nil {
		return nil, err
	}
	if !ok {
		c.printf("Cancelling drain toggle\n")
		return nil, nil
	}
	return node, nil
}

// options checks the flags together. They are nil with -monitor.
func (f *nodeDrainFlags) options() (*api.DrainOptions, error) {
	noDelay, killTimeout := f.values()
	modes := 0
	for _, set := range []bool{f.enable, f.disable, f.monitor && !f.enable} {
		if set {
			modes++
		}
	}
	ends := 0
	for _, set := range []bool{f.deadline != nil, f.force, f.noDeadline} {
		if set {
			ends++
		}
	}
	switch {
	case modes != 1:
		return nil, fmt.Errorf("give exactly one of -enable, -disable and -monitor")
	case f.monitor && f.detach:
		return nil, fmt.Errorf("-monitor and -detach cannot be used together")
	case ends > 1:
		return nil, fmt.Errorf("give only one of -deadline, -force and -no-deadline")
	case !f.enable && (ends > 0 || f.ignoreSystem || noDelay || killTimeout != nil):
		return nil, fmt.Errorf("-deadline, -force, -no-deadline, -ignore-system and the options of the stops need -enable")
	case !f.disable && f.keepIneligible:
		return nil, fmt.Errorf("-keep-ineligible needs -disable")
	}
	if f.monitor && !f.enable {
		return nil, nil
	}
	f.monitor = false // an -enable follows the drain anyway
	opts := &api.DrainOptions{Meta: f.meta}
	if f.message != "" {
		if opts.Meta == nil {
			opts.Meta = map[string]string{}
		}
		opts.Meta["message"] = f.message
	}
	if f.disable {
		opts.MarkEligible = !f.keepIneligible
		return opts, nil
	}
	opts.Spec = &structs.DrainSpec{Deadline: defaultDrainDeadline, IgnoreSystemJobs: f.ignoreSystem, NoShutdownDelay: noDelay,
		KillTimeout: killTimeout}
	switch {
	case f.force:
		opts.Spec.Deadline = -time.Second
	case f.noDeadline:
		opts.Spec.Deadline = 0
	case f.deadline != nil:
		d, err := time.ParseDuration(*f.deadline)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("-deadline needs a duration of more than 0 such as 30m, got %q; see -force and -no-deadline", *f.deadline)
		}
		opts.Spec.Deadline = d
	}
	return opts, nil
}
