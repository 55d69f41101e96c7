package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func schedulerGetConfig() *spec {
	return &spec{name: "operator scheduler get-config", args: "", synopsis: "Show the scheduler's configuration", client: true,
		help: "Shows the scheduler's configuration.", maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				cfg, _, err := c.client.Operator().SchedulerConfiguration(ctx, nil)
				if err != nil {
					return fmt.Errorf("error querying the scheduler's configuration: %s", api.Text(err))
				}
				if done, err := data(c.out, cfg, asJSON, tmpl); done {
					return err
				}
				c.printf("%s", pairs([2]string{"Scheduler Algorithm", cfg.SchedulerAlgorithm},
					[2]string{"Memory Oversubscription", yesNo(cfg.MemoryOversubscriptionEnabled)},
					[2]string{"Reject Job Registration", yesNo(cfg.RejectJobRegistration)},
					[2]string{"Pause Eval Broker", yesNo(cfg.PauseEvalBroker)},
					[2]string{"Preemption System Scheduler", yesNo(cfg.PreemptionConfig.SystemSchedulerEnabled)},
					[2]string{"Preemption Service Scheduler", yesNo(cfg.PreemptionConfig.ServiceSchedulerEnabled)},
					[2]string{"Preemption Batch Scheduler", yesNo(cfg.PreemptionConfig.BatchSchedulerEnabled)},
					[2]string{"Preemption SysBatch Scheduler", yesNo(cfg.PreemptionConfig.SysBatchSchedulerEnabled)},
					[2]string{"Modify Index", fmt.Sprint(cfg.ModifyIndex)}))
				return nil
			}
		}}
}
