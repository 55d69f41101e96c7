package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func scalingPolicyList() *spec {
	return &spec{name: "scaling policy list", args: "", synopsis: "List scaling policies", client: true,
		help: "Lists the scaling policies of the jobs which are not stopped, the oldest first.", maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, verbose bool
			var tmpl, job, kind string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			fs.StringVar(&job, "job", "", "List only those of the `JOB`.")
			fs.StringVar(&kind, "type", "", "List only those of this `TYPE`, such as horizontal.")
			return func(ctx context.Context, c *call) error {
				q := c.query()
				q.Params = map[string]string{}
				for name, value := range map[string]string{"job": job, "type": kind} {
					if value != "" {
						q.Params[name] = value
					}
				}
				list, _, err := c.client.Scaling().ListPolicies(ctx, q)
				if err != nil {
					return fmt.Errorf("error listing scaling policies: %s", api.Text(err))
				}
				if done, err := data(c.out, list, asJSON, tmpl); done {
					return err
				}
				if len(list) == 0 {
					c.printf("No policies found\n")
					return nil
				}
				rows := [][]string{{"ID", "Enabled", "Type", "Target"}}
				for _, p := range list {
					rows = append(rows, []string{shortID(p.ID, verbose), yesNo(p.Enabled), p.Type, scalingTarget(p.Target)})
				}
				c.printf("%s", table(rows))
				return nil
			}
		}}
}

func scalingPolicyInfo() *spec {
	return &spec{name: "scaling policy info", args: "<policy id>", synopsis: "Show a scaling policy", client: true,
		help: "Shows a scaling policy. The id may be given by its beginning.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, verbose bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				policy, err := c.scalingPolicy(ctx, c.args[0])
				if err != nil {
					return err
				}
				if done, err := data(c.out, policy, asJSON, tmpl); done {
					return err
				}
				c.printf("%s", pairs([2]string{"ID", shortID(policy.ID, verbose)},
					[2]string{"Enabled", yesNo(structs.Val(policy.Enabled))}, [2]string{"Type", policy.Type},
					[2]string{"Target", scalingTarget(policy.Target)},
					[2]string{"Min", bound(policy.Min)}, [2]string{"Max", bound(policy.Max)},
					[2]string{"Create Index", fmt.Sprint(policy.CreateIndex)},
					[2]string{"Modify Index", fmt.Sprint(policy.ModifyIndex)}))
				if len(policy.Policy) == 0 {
					return nil
				}
				text, err := json.MarshalIndent(policy.Policy, "", "  ")
				if err != nil {
					return fmt.Errorf("format policy: %w", err)
				}
				c.printf("Policy:\n%s\n", text)
				return nil
			}
		}}
}

// scalingPolicy finds a policy by its id or the beginning of it.
func (c *call) scalingPolicy(ctx context.Context, id string) (*structs.ScalingPolicy, error) {
	id = trimPrefix(id)
	q := c.query()
	q.Prefix = id
	if q.Namespace == "" {
		q.Namespace = structs.AllNamespaces
	}
	list, _, err := c.client.Scaling().ListPolicies(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("error querying scaling policy: %s", api.Text(err))
	}
	stub, err := pick("scaling policy", id, list, func(p *structs.ScalingPolicyListStub) string { return p.ID },
		func(p *structs.ScalingPolicyListStub) []string {
			return []string{p.ID, p.Type, scalingTarget(p.Target)}
		},
		[]string{"ID", "Type", "Target"})
	if err != nil {
		return nil, err
	}
	policy, _, err := c.client.Scaling().GetPolicy(ctx, stub.ID, c.query())
	if err != nil {
		return nil, fmt.Errorf("error querying scaling policy: %s", api.Text(err))
	}
	return policy, nil
}

// scalingTarget writes what a policy scales from the largest to the smallest: Namespace:default,Job:web,Group:api.
func scalingTarget(target map[string]string) string {
	var parts []string
	for _, name := range []string{"Namespace", "Job", "Group", "Task"} {
		if value := target[name]; value != "" {
			parts = append(parts, name+":"+value)
		}
	}
	return strings.Join(parts, ",")
}

func bound(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}
