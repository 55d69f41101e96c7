package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// namespace finds a namespace by its name or the beginning of it.
func (c *call) namespace(ctx context.Context, name string) (*structs.Namespace, error) {
	list, _, err := c.client.Namespaces().List(ctx, &api.QueryOptions{Prefix: name})
	if err != nil {
		return nil, fmt.Errorf("find namespace: %s", api.Text(err))
	}
	return pick("namespace", name, list, func(n *structs.Namespace) string { return n.Name },
		func(n *structs.Namespace) []string { return []string{n.Name, n.Description} }, []string{"Name", "Description"})
}

func namespaceList() *spec {
	return &spec{name: "namespace list", args: "", synopsis: "List namespaces", client: true,
		help: "Lists namespaces by name.", maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				list, _, err := c.client.Namespaces().List(ctx, nil)
				if err != nil {
					return fmt.Errorf("error querying namespaces: %s", api.Text(err))
				}
				if done, err := data(c.out, list, asJSON, tmpl); done {
					return err
				}
				rows := [][]string{{"Name", "Description"}}
				for _, n := range list {
					rows = append(rows, []string{n.Name, n.Description})
				}
				c.printf("%s", table(rows))
				return nil
			}
		}}
}

func namespaceStatus() *spec {
	return &spec{name: "namespace status", args: "<namespace>", synopsis: "Show a namespace", client: true,
		help: "Shows a namespace. It may be given by prefix.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				ns, err := c.namespace(ctx, c.args[0])
				if err != nil {
					return err
				}
				if done, err := data(c.out, ns, asJSON, tmpl); done {
					return err
				}
				c.printf("%s", namespaceText(ns))
				return nil
			}
		}}
}

func namespaceText(ns *structs.Namespace) string {
	text := pairs([2]string{"Name", ns.Name}, [2]string{"Description", orNone(ns.Description)}, [2]string{"Quota", orNone(ns.Quota)})
	if caps := ns.Capabilities; caps != nil {
		text += "\nCapabilities\n" + pairs([2]string{"Enabled Drivers", listOr(caps.EnabledTaskDrivers, "*")},
			[2]string{"Disabled Drivers", listOr(caps.DisabledTaskDrivers, "<none>")},
			[2]string{"Enabled Network Modes", listOr(caps.EnabledNetworkModes, "*")},
			[2]string{"Disabled Network Modes", listOr(caps.DisabledNetworkModes, "<none>")})
	}
	if len(ns.Meta) > 0 {
		var meta [][2]string
		for _, k := range sortedKeys(ns.Meta) {
			meta = append(meta, [2]string{k, ns.Meta[k]})
		}
		text += "\nMetadata\n" + pairs(meta...)
	}
	return text
}

func namespaceInspect() *spec {
	return &spec{name: "namespace inspect", args: "<namespace>", synopsis: "Show a namespace as the API has it", client: true,
		help: "Prints a namespace as JSON. It may be given by prefix.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var tmpl string
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				ns, err := c.namespace(ctx, c.args[0])
				if err != nil {
					return err
				}
				_, err = data(c.out, ns, tmpl == "", tmpl)
				return err
			}
		}}
}

func namespaceDelete() *spec {
	return &spec{name: "namespace delete", args: "<namespace>", synopsis: "Delete a namespace", client: true,
		help:    "Deletes a namespace, which is given by its whole name. No job that may run, and nothing else, may be in it.",
		minArgs: 1, maxArgs: 1,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(ctx context.Context, c *call) error {
				name := c.args[0]
				if _, err := c.client.Namespaces().Delete(ctx, name, nil); err != nil {
					return fmt.Errorf("error deleting namespace %q: %s", name, api.Text(err))
				}
				c.printf("Successfully deleted namespace %q!\n", name)
				return nil
			}
		}}
}

// listOr joins a list by commas; nothing stands for an empty one.
func listOr(list []string, nothing string) string {
	if len(list) == 0 {
		return nothing
	}
	return strings.Join(list, ",")
}
