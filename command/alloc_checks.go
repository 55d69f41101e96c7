package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func allocChecks() *spec {
	return &spec{name: "alloc checks", args: "<allocation>", synopsis: "Show the results of an allocation's health checks", client: true,
		help: `Shows the newest result of each check of the allocation's services of provider "nomad", as its node has it.
An allocation may be given by prefix.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(new(bool), "verbose", false, "Accepted; everything is shown anyway.")
			return func(ctx context.Context, c *call) error {
				a, err := c.alloc(ctx, c.args[0])
				if err != nil {
					return err
				}
				checks, err := c.client.Allocations().Checks(ctx, a.ID, nil)
				if err != nil {
					return fmt.Errorf("error querying checks: %s", api.Text(err))
				}
				if done, err := data(c.out, checks, asJSON, tmpl); done {
					return err
				}
				showChecks(c, checks)
				return nil
			}
		}}
}

func showChecks(c *call, checks structs.AllocCheckStatuses) {
	if len(checks) == 0 {
		c.printf("No checks found\n")
		return
	}
	c.printf("Status of %d Nomad Service Checks\n", len(checks))
	for _, s := range inOrder(checks) {
		rows := [][2]string{{"ID", s.ID}, {"Name", s.Check}, {"Group", s.Group}, {"Task", checkTask(s)}, {"Service", s.Service},
			{"Status", s.Status}}
		if s.StatusCode != 0 {
			rows = append(rows, [2]string{"StatusCode", fmt.Sprint(s.StatusCode)})
		}
		at := "<none>"
		if s.Timestamp > 0 {
			at = time.Unix(s.Timestamp, 0).Format(time.RFC3339)
		}
		rows = append(rows, [2]string{"Mode", s.Mode}, [2]string{"Timestamp", at}, [2]string{"Output", orNone(s.Output)})
		c.printf("\n%s", pairs(rows...))
	}
}

func inOrder(checks structs.AllocCheckStatuses) []structs.AllocCheckStatus {
	var list []structs.AllocCheckStatus
	for _, s := range checks {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b structs.AllocCheckStatus) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Check, b.Check), cmp.Compare(a.ID, b.ID))
	})
	return list
}

func checkTask(s structs.AllocCheckStatus) string {
	if s.Task == "" {
		return "(group)"
	}
	return s.Task
}

// checks shows how the checks of an allocation stand, if it has any and its node can be asked.
func (f *allocStatusFlags) checks(ctx context.Context, c *call, a *structs.Allocation) {
	if a.ClientStatus != structs.AllocClientStatusRunning || !hasChecks(a.Group()) {
		return
	}
	checks, err := c.client.Allocations().Checks(ctx, a.ID, nil)
	if err != nil {
		c.printf("\nNomad Service Checks: %s\n", api.Text(err))
		return
	}
	rows := [][]string{{"Service", "Task", "Name", "Mode", "Status"}}
	for _, s := range inOrder(checks) {
		rows = append(rows, []string{s.Service, checkTask(s), s.Check, s.Mode, s.Status})
	}
	c.printf("\nNomad Service Checks:\n%s", table(rows))
}

// hasChecks says whether a node asks checks of the group's services.
func hasChecks(group *structs.TaskGroup) bool {
	if group == nil {
		return false
	}
	services := slices.Clone(group.Services)
	for _, t := range group.Tasks {
		services = append(services, t.Services...)
	}
	return slices.ContainsFunc(services, func(s *structs.Service) bool {
		return s.Provider == structs.ServiceProviderNomad && len(s.Checks) > 0
	})
}
