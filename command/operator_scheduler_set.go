package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

const schedulerSetHelp = `Changes the scheduler's configuration. What no flag names stays as it is. Each of the flags takes a value:
-preempt-batch-scheduler=true. With -check-index nothing is changed unless the configuration is still at that modify index;
without it the command still refuses to overwrite what somebody else changed while it ran.`

// schedulerEdit is one setting by its flag.
type schedulerEdit func(*structs.SchedulerConfiguration)

// schedulerSwitches are the flags which take true or false.
var schedulerSwitches = []struct {
	name, usage string
	field       func(*structs.SchedulerConfiguration) *bool
}{
	{"memory-oversubscription", "Let tasks use more memory than they reserve, up to memory_max: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.MemoryOversubscriptionEnabled }},
	{"reject-job-registration", "Refuse to register, dispatch and scale jobs: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.RejectJobRegistration }},
	{"pause-eval-broker", "Hand out no evaluations: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.PauseEvalBroker }},
	{"preempt-batch-scheduler", "Let batch jobs evict jobs of lower priority: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.PreemptionConfig.BatchSchedulerEnabled }},
	{"preempt-service-scheduler", "Let service jobs evict jobs of lower priority: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.PreemptionConfig.ServiceSchedulerEnabled }},
	{"preempt-sysbatch-scheduler", "Let sysbatch jobs evict jobs of lower priority: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.PreemptionConfig.SysBatchSchedulerEnabled }},
	{"preempt-system-scheduler", "Let system jobs evict jobs of lower priority: `true or false`.",
		func(c *structs.SchedulerConfiguration) *bool { return &c.PreemptionConfig.SystemSchedulerEnabled }},
}

func schedulerSetConfig() *spec {
	return &spec{name: "operator scheduler set-config", args: "", synopsis: "Change the scheduler's configuration", client: true,
		help: schedulerSetHelp, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var index string
			var edits []schedulerEdit
			fs.StringVar(&index, "check-index", "", "Change it only if it is still at this modify `INDEX`.")
			fs.Func("scheduler-algorithm", "How nodes are ranked: `binpack or spread`.", func(text string) error {
				if text != "binpack" && text != "spread" {
					return fmt.Errorf("expected binpack or spread")
				}
				edits = append(edits, func(c *structs.SchedulerConfiguration) { c.SchedulerAlgorithm = text })
				return nil
			})
			fs.Func("node-limit-for-feasibility-checks", "Stored for tools; all `NODES` are looked at whatever it says.", func(text string) error {
				n, err := strconv.ParseUint(text, 10, 32)
				if err != nil {
					return fmt.Errorf("expected a number of nodes, 0 or more")
				}
				edits = append(edits, func(c *structs.SchedulerConfiguration) { c.NodeLimitForFeasibilityChecks = uint(n) })
				return nil
			})
			for _, s := range schedulerSwitches {
				fs.Func(s.name, s.usage, func(text string) error {
					value, err := strconv.ParseBool(text)
					if err != nil {
						return fmt.Errorf("expected true or false")
					}
					edits = append(edits, func(c *structs.SchedulerConfiguration) { *s.field(c) = value })
					return nil
				})
			}
			return func(ctx context.Context, c *call) error { return setScheduler(ctx, c, index, edits) }
		}}
}

func setScheduler(ctx context.Context, c *call, index string, edits []schedulerEdit) error {
	cfg, _, err := c.client.Operator().SchedulerConfiguration(ctx, nil)
	if err != nil {
		return fmt.Errorf("error querying the scheduler's configuration: %s", api.Text(err))
	}
	if index != "" {
		if cfg.ModifyIndex, err = strconv.ParseUint(index, 10, 64); err != nil {
			return fmt.Errorf("-check-index: %q is no index", index)
		}
	}
	for _, edit := range edits {
		edit(cfg)
	}
	if len(edits) == 0 && index == "" {
		c.printf("No flag names a setting: nothing was changed\n")
		return nil
	}
	updated, _, err := c.client.Operator().SetSchedulerConfiguration(ctx, cfg, true, nil)
	if err != nil {
		return fmt.Errorf("error setting the scheduler's configuration: %s", api.Text(err))
	}
	if !updated {
		return fmt.Errorf("the scheduler's configuration is not at index %d any more: nothing was changed", cfg.ModifyIndex)
	}
	c.printf("Scheduler configuration updated!\n")
	return nil
}
