package command

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

const noServices = "No service registrations found\n"

func serviceList() *spec {
	return &spec{name: "service list", args: "", synopsis: "List registered services", client: true,
		help: "Lists the services of provider nomad that are registered, with the tags of all their instances.", minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl, name string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&name, "name", "", "List only the service of that `NAME`.")
			return func(ctx context.Context, c *call) error {
				list, _, err := c.client.Services().List(ctx, c.query())
				if err != nil {
					return fmt.Errorf("error listing services: %s", api.Text(err))
				}
				if name != "" {
					list = servicesNamed(list, name)
				}
				if done, err := data(c.out, list, asJSON, tmpl); done {
					return err
				}
				if len(list) == 0 {
					c.printf(noServices)
					return nil
				}
				c.printf("%s", serviceTable(list, c.ns == structs.AllNamespaces))
				return nil
			}
		}}
}

// servicesNamed keeps one service of each namespace.
func servicesNamed(list []*structs.ServiceRegistrationListStub, name string) []*structs.ServiceRegistrationListStub {
	out := []*structs.ServiceRegistrationListStub{}
	for _, ns := range list {
		kept := slices.DeleteFunc(slices.Clone(ns.Services), func(s *structs.ServiceRegistrationStub) bool { return s.ServiceName != name })
		if len(kept) > 0 {
			out = append(out, &structs.ServiceRegistrationListStub{Namespace: ns.Namespace, Services: kept})
		}
	}
	return out
}

func serviceTable(list []*structs.ServiceRegistrationListStub, namespaces bool) string {
	rows := [][]string{{"Service Name", "Tags"}}
	if namespaces {
		rows[0] = []string{"Service Name", "Namespace", "Tags"}
	}
	for _, ns := range list {
		for _, s := range ns.Services {
			row := []string{s.ServiceName, tagList(s.Tags)}
			if namespaces {
				row = []string{s.ServiceName, ns.Namespace, tagList(s.Tags)}
			}
			rows = append(rows, row)
		}
	}
	return table(rows)
}

func tagList(tags []string) string { return "[" + strings.Join(tags, ",") + "]" }

// serviceAddress is where an instance is reached; it may have no port.
func serviceAddress(s *structs.ServiceRegistration) string {
	if s.Port == 0 {
		return s.Address
	}
	return net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
}

func serviceInfo() *spec {
	return &spec{name: "service info", args: "<service_name>", synopsis: "Show the instances of a service", client: true,
		help: "Shows where the instances of a service are reached, and what offers them.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, verbose bool
			var tmpl, filter, token string
			var perPage int
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&verbose, "verbose", false, "Show everything, ids whole.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&filter, "filter", "", "Show only instances that an `EXPRESSION` matches.")
			fs.IntVar(&perPage, "per-page", 0, "How many `INSTANCES` on a page.")
			fs.StringVar(&token, "page-token", "", "`TOKEN` of the page to show.")
			return func(ctx context.Context, c *call) error {
				q := c.query()
				q.Filter, q.PerPage, q.NextToken = filter, perPage, token
				list, meta, err := c.client.Services().Get(ctx, c.args[0], q)
				if err != nil {
					return fmt.Errorf("error reading service: %s", api.Text(err))
				}
				if done, err := data(c.out, list, asJSON, tmpl); done {
					return err
				}
				switch {
				case len(list) == 0:
					c.printf(noServices)
				case verbose:
					c.printf("%s", instancesVerbose(list))
				default:
					c.printf("%s", instanceTable(list))
				}
				if meta.NextToken != "" {
					c.printf("\nResults have been paginated. To get the next page run:\n\nnomadlite service info -page-token %s %s\n",
						meta.NextToken, c.args[0])
				}
				return nil
			}
		}}
}

func instanceTable(list []*structs.ServiceRegistration) string {
	rows := [][]string{{"Job ID", "Address", "Tags", "Node ID", "Alloc ID"}}
	for _, s := range list {
		rows = append(rows, []string{s.JobID, serviceAddress(s), tagList(s.Tags), shortID(s.NodeID, false), shortID(s.AllocID, false)})
	}
	return table(rows)
}

func instancesVerbose(list []*structs.ServiceRegistration) string {
	blocks := make([]string, len(list))
	for i, s := range list {
		blocks[i] = pairs([2]string{"ID", s.ID}, [2]string{"Service Name", s.ServiceName}, [2]string{"Namespace", s.Namespace},
			[2]string{"Job ID", s.JobID}, [2]string{"Alloc ID", s.AllocID}, [2]string{"Node ID", s.NodeID},
			[2]string{"Datacenter", s.Datacenter}, [2]string{"Address", serviceAddress(s)}, [2]string{"Tags", tagList(s.Tags)})
	}
	return strings.Join(blocks, "\n")
}

func serviceDelete() *spec {
	return &spec{name: "service delete", args: "<service_name> <service_id>", synopsis: "Remove an instance of a service from the registry",
		client: true, minArgs: 2, maxArgs: 2,
		help: "Removes an instance from the registry; what offers it goes on. It comes back when its task starts again, when its job\n" +
			"is updated, or when its node connects to the servers anew.",
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(ctx context.Context, c *call) error {
				name, id := c.args[0], c.args[1]
				if _, err := c.client.Services().Delete(ctx, name, id, &api.WriteOptions{Namespace: c.ns}); err != nil {
					return fmt.Errorf("error deleting service registration: %s", api.Text(err))
				}
				c.printf("Successfully deleted service registration\n")
				return nil
			}
		}}
}
