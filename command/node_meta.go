package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func nodeMetaApply() *spec {
	return &spec{name: "node meta apply", args: "<key=value> ...", synopsis: "Set metadata of a node while it runs", client: true,
		help: `Sets keys of a node's metadata, which jobs ask for as ${meta.KEY}, until they are set otherwise; the node keeps them over a restart
of its agent. Without -node-id it is the node of the agent that is asked. Tasks that run keep what they were given.`,
		minArgs: 0, maxArgs: -1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var node, unset string
			fs.StringVar(&node, "node-id", "", "Set them on the `NODE` instead; it may be given by prefix.")
			fs.StringVar(&unset, "unset", "", "Unset these `KEYS`, which commas part.")
			return func(ctx context.Context, c *call) error {
				changes, err := metaChanges(c.args, unset)
				if err != nil {
					return err
				}
				req := structs.NodeMetaApplyRequest{Meta: changes}
				if req.NodeID, err = c.nodeIDOr(ctx, node); err != nil {
					return err
				}
				if _, err := c.client.Nodes().ApplyMeta(ctx, req, nil); err != nil {
					return fmt.Errorf("error applying node metadata: %s", api.Text(err))
				}
				return nil
			}
		}}
}

// metaChanges reads KEY=VALUE arguments and the keys to unset.
func metaChanges(args []string, unset string) (map[string]*string, error) {
	changes := map[string]*string{}
	for key := range strings.SplitSeq(unset, ",") {
		if key = strings.TrimSpace(key); key != "" {
			changes[key] = nil
		}
	}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("metadata is given as KEY=VALUE, got %q", arg)
		}
		if was, twice := changes[key]; twice && was == nil {
			return nil, fmt.Errorf("key %q is both set and unset", key)
		}
		changes[key] = &value
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("give KEY=VALUE to set, or -unset")
	}
	return changes, nil
}

// nodeIDOr gives the whole id of a node; empty for empty.
func (c *call) nodeIDOr(ctx context.Context, prefix string) (string, error) {
	if prefix == "" {
		return "", nil
	}
	node, err := c.node(ctx, prefix)
	if err != nil {
		return "", err
	}
	return node.ID, nil
}

func nodeMetaRead() *spec {
	return &spec{name: "node meta read", args: "", synopsis: "Show the metadata of a node", client: true,
		help: `Shows a node's metadata as the node itself knows it: all that counts, what was set while it runs, and what its
configuration says. Without -node-id it is the node of the agent that is asked.`,
		minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var node, tmpl string
			var asJSON bool
			fs.StringVar(&node, "node-id", "", "Show that of the `NODE` instead; it may be given by prefix.")
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				id, err := c.nodeIDOr(ctx, node)
				if err != nil {
					return err
				}
				meta, err := c.client.Nodes().Meta(ctx, id, nil)
				if err != nil {
					return fmt.Errorf("error reading node metadata: %s", api.Text(err))
				}
				if done, err := data(c.out, meta, asJSON, tmpl); done {
					return err
				}
				c.printf("%s", metaText(meta))
				return nil
			}
		}}
}

func metaText(meta *structs.NodeMetaResponse) string {
	dynamic := map[string]string{}
	for k, v := range meta.Dynamic {
		dynamic[k] = "<unset>"
		if v != nil {
			dynamic[k] = *v
		}
	}
	var parts []string
	for _, part := range []struct {
		head string
		meta map[string]string
	}{{"All Meta", meta.Meta}, {"Dynamic Meta", dynamic}, {"Static Meta", meta.Static}} {
		text := part.head + "\n"
		if len(part.meta) == 0 {
			text += "<none>\n"
		}
		var rows [][2]string
		for _, k := range sortedKeys(part.meta) {
			rows = append(rows, [2]string{k, part.meta[k]})
		}
		parts = append(parts, text+pairs(rows...))
	}
	return strings.Join(parts, "\n")
}
