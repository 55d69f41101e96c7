package command

import (
	"context"
	"flag"
	"fmt"
	"sort"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

type nodeMaintenanceFlags struct {
	forText, reason           string
	disable, self, force, yes bool
}

func nodeMaintenance() *spec {
	return &spec{name: "node maintenance", args: "<node>", synopsis: "Announce a downtime of a node", client: true,
		help: "Until the announced time is over the node may be silent without losing what runs there: it gets nothing new,\n" +
			"and nothing of it is replaced, but for groups whose lease (stop_on_client_after) is shorter; these are listed\n" +
			"first. A node that is not back by then is treated as one that has just been lost. A node may be given by prefix.",
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &nodeMaintenanceFlags{}
			fs.StringVar(&f.forText, "for", "", "How long, a `DURATION` such as 20m.")
			fs.StringVar(&f.reason, "reason", "", "`TEXT` that is shown with the node and its allocations.")
			fs.BoolVar(&f.disable, "disable", false, "The maintenance is over.")
			fs.BoolVar(&f.self, "self", false, "The node of the agent that is asked.")
			fs.BoolVar(&f.yes, "yes", false, "Do not ask when a prefix names the node.")
			fs.BoolVar(&f.force, "force", false, "Let it be longer than a week.")
			return f.run
		}}
}

func (f *nodeMaintenanceFlags) run(ctx context.Context, c *call) error {
	req, err := f.request()
	if err != nil {
		return err
	}
	id, err := f.node(ctx, c)
	if err != nil {
		return err
	}
	node, err := c.node(ctx, id)
	if err != nil {
		return err
	}
	if node.ID != trimPrefix(id) && !f.yes {
		verb := "announce a downtime of"
		if f.disable {
			verb = "end the maintenance of"
		}
		ok, err := c.confirm(fmt.Sprintf("Are you sure you want to %s node %q? [y/N] ", verb, node.ID))
		if err != nil || !ok {
			c.printf("Cancelling node maintenance\n")
			return err
		}
	}
	if !f.disable {
		if err := f.warn(ctx, c, node, req.For); err != nil {
			return err
		}
	}
	req.NodeID = node.ID
	answer, _, err := c.client.Nodes().SetMaintenance(ctx, req, nil)
	if err != nil {
		return fmt.Errorf("error setting maintenance: %s", api.Text(err))
	}
	switch {
	case !f.disable:
		c.printf("Node %q is in maintenance until %s\n", node.ID, formatTime(answer.Maintenance.Until))
	case node.Maintenance == nil:
		c.printf("Node %q is not in maintenance\n", node.ID)
	default:
		c.printf("Maintenance of node %q is over\n", node.ID)
	}
	return nil
}

// request checks the flags.
func (f *nodeMaintenanceFlags) request() (structs.NodeMaintenanceRequest, error) {
	req := structs.NodeMaintenanceRequest{Reason: f.reason, Disable: f.disable, Force: f.force}
	if f.disable == (f.forText != "") {
		return req, fmt.Errorf("give exactly one of -for and -disable")
	}
	if f.disable {
		return req, nil
	}
	d, err := time.ParseDuration(f.forText)
	switch {
	case err != nil:
		return req, fmt.Errorf("-for: %q is no duration such as 20m or 2h", f.forText)
	case d <= 0:
		return req, fmt.Errorf("-for: %s is not above 0", d)
	case d > structs.MaxNodeMaintenance && !f.force:
		return req, fmt.Errorf("-for: %s is longer than a week; give -force too if that is meant", d)
	}
	req.For = d
	return req, nil
}

func (f *nodeMaintenanceFlags) node(ctx context.Context, c *call) (string, error) {
	if len(c.args) == 1 && f.self {
		return "", fmt.Errorf("give a node or -self, not both")
	}
	if len(c.args) == 1 {
		return c.args[0], nil
	}
	if !f.self {
		return "", fmt.Errorf("name a node, or use -self on a client agent")
	}
	agent, err := c.client.Agent().Self(ctx)
	if err != nil {
		return "", fmt.Errorf("error querying agent: %s", api.Text(err))
	}
	id := agent.Stats["client"]["node_id"]
	if id == "" {
		return "", fmt.Errorf("the agent that was asked is no client: it has no node")
	}
	return id, nil
}

// warn lists the groups whose lease runs out before the node is expected back.
func (f *nodeMaintenanceFlags) warn(ctx context.Context, c *call, node *structs.Node, d time.Duration) error {
	allocs, _, err := c.client.Nodes().Allocations(ctx, node.ID, nil)
	if err != nil {
		return fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	short := map[string]time.Duration{}
	for _, a := range allocs {
		if lease, _ := a.Group().LeaseOn(node); !a.TerminalStatus() && lease > 0 && lease < d {
			short[a.JobID+"\x00"+a.TaskGroup] = lease
		}
	}
	if len(short) == 0 {
		return nil
	}
	var rows [][]string
	for _, a := range allocs {
		key := a.JobID + "\x00" + a.TaskGroup
		if lease, ok := short[key]; ok {
			rows = append(rows, []string{a.JobID, a.TaskGroup, lease.String()})
			delete(short, key)
		}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0]+"\x00"+rows[i][1] < rows[j][0]+"\x00"+rows[j][1] })
	c.printf("These groups have a shorter lease: if the node is away for longer they are stopped on it, and replaced.\n\n%s\n",
		table(append([][]string{{"Job ID", "Task Group", "Lease"}}, rows...)))
	return nil
}
