package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func serverMembers() *spec {
	return &spec{name: "server members", args: "", synopsis: "List the servers", client: true,
		help: "Lists the servers which the agent knows, and which of them leads.", minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, detailed, verbose bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&detailed, "detailed", false, "Show all tags.")
			fs.BoolVar(&verbose, "verbose", false, "Show more columns.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return func(ctx context.Context, c *call) error {
				members, err := c.client.Agent().Members(ctx, nil)
				if err != nil {
					return fmt.Errorf("error querying servers: %s", api.Text(err))
				}
				if done, err := data(c.out, members.Members, asJSON, tmpl); done {
					return err
				}
				leader, err := c.client.Status().Leader(ctx)
				if err != nil && api.StatusCode(err) != 500 {
					return fmt.Errorf("error querying the leader: %s", api.Text(err))
				}
				rows := [][]string{{"Name", "Address", "Port", "Status", "Leader", "Raft Version", "Build", "Datacenter", "Region"}}
				if detailed {
					rows = [][]string{{"Name", "Address", "Port", "Tags"}}
				}
				for _, m := range members.Members {
					if detailed {
						tags := ""
						for i, k := range sortedKeys(m.Tags) {
							if i > 0 {
								tags += ","
							}
							tags += k + "=" + m.Tags[k]
						}
						rows = append(rows, []string{m.Name, m.Addr, fmt.Sprint(m.Port), tags})
						continue
					}
					leads := leader != "" && (leader == m.Tags["rpc_addr"]+":"+m.Tags["port"] || leader == m.Addr+":"+m.Tags["port"])
					rows = append(rows, []string{m.Name, m.Addr, fmt.Sprint(m.Port), m.Status, yesNo(leads), m.Tags["raft_vsn"],
						m.Tags["build"], m.Tags["dc"], m.Tags["region"]})
				}
				c.printf("%s", table(rows))
				if leader == "" {
					return &exitError{code: 1, text: "No cluster leader"}
				}
				return nil
			}
		}}
}
