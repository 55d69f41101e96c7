package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// listFlag collects a flag that may be repeated.
type listFlag []string

// String is for package flag.
func (l listFlag) String() string { return strings.Join(l, ",") }

// Set takes one more value.
func (l *listFlag) Set(text string) error {
	if text == "" {
		return fmt.Errorf("a name must not be empty")
	}
	*l = append(*l, text)
	return nil
}

// deploymentVerb makes a command that changes a deployment and then follows its evaluation and itself.
func deploymentVerb(s spec, declare func(fs *flag.FlagSet), change func(ctx context.Context, c *call, d *structs.Deployment) (
	*structs.DeploymentUpdateResponse, error), said string, follows bool,
) *spec {
	s.args, s.client, s.minArgs, s.maxArgs = "<deployment>", true, 1, 1
	s.help += " A deployment may be given by prefix."
	s.prepare = func(fs *flag.FlagSet) func(context.Context, *call) error {
		var detach, verbose bool
		if follows {
			fs.BoolVar(&detach, "detach", false, "Print the evaluation's id and return at once.")
		}
		fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
		declare(fs)
		return func(ctx context.Context, c *call) error {
			d, err := c.deployment(ctx, c.args[0])
			if err != nil {
				return err
			}
			answer, err := change(ctx, c, d)
			if err != nil {
				return fmt.Errorf("%s: %s", s.name, api.Text(err))
			}
			if answer == nil {
				return nil
			}
			c.printf("Deployment %q %s\n", shortID(d.ID, verbose), said)
			switch {
			case !follows || answer.EvalID == "":
				return nil
			case detach:
				c.printf("Evaluation ID: %s\n", answer.EvalID)
				return nil
			}
			m := &monitor{c: c, verbose: verbose, only: s.name == "deployment fail"}
			return m.eval(ctx, answer.EvalID)
		}
	}
	return &s
}

func noFlags(*flag.FlagSet) {}

func deploymentFail() *spec {
	f := &stopFlags{}
	return deploymentVerb(spec{name: "deployment fail", synopsis: "Give a deployment up",
		help: `Ends a deployment as failed; what was rolling out and is not wanted any more is stopped. To shorten stops that are under
way, call it again with -no-shutdown-delay.`}, f.declare,
		func(ctx context.Context, c *call, d *structs.Deployment) (*structs.DeploymentUpdateResponse, error) {
			noDelay, killTimeout := f.values()
			if !d.Active() {
				c.printf("Deployment %q is %s already\n", d.ID, d.Status)
				if d.Status != structs.DeploymentStatusFailed || !noDelay && killTimeout == nil {
					return nil, nil
				}
				c.printf("What still stops of it is stopped with the options given\n")
			}
			answer, _, err := c.client.Deployments().Fail(ctx, d.ID, &api.FailOptions{NoShutdownDelay: noDelay, KillTimeout: killTimeout}, nil)
			return answer, err
		}, "failed", true)
}

func deploymentPause() *spec {
	return deploymentVerb(spec{name: "deployment pause", synopsis: "Hold a deployment",
		help: "Holds a deployment: nothing new is placed and no deadline runs until it is resumed."}, noFlags,
		func(ctx context.Context, c *call, d *structs.Deployment) (*structs.DeploymentUpdateResponse, error) {
			answer, _, err := c.client.Deployments().Pause(ctx, d.ID, true, nil)
			return answer, err
		}, "paused", false)
}

func deploymentResume() *spec {
	return deploymentVerb(spec{name: "deployment resume", synopsis: "Let a paused deployment go on",
		help: "Lets a paused deployment go on; its deadlines begin anew."}, noFlags,
		func(ctx context.Context, c *call, d *structs.Deployment) (*structs.DeploymentUpdateResponse, error) {
			answer, _, err := c.client.Deployments().Pause(ctx, d.ID, false, nil)
			return answer, err
		}, "resumed", true)
}

func deploymentPromote() *spec {
	var groups listFlag
	return deploymentVerb(spec{name: "deployment promote", synopsis: "Promote the canaries of a deployment",
		help: "Makes the canaries of all groups, or of those named, ordinary allocations; the rest is then rolled out."},
		func(fs *flag.FlagSet) {
			groups = nil
			fs.Var(&groups, "group", "`NAME` of a group; may be repeated.")
		},
		func(ctx context.Context, c *call, d *structs.Deployment) (*structs.DeploymentUpdateResponse, error) {
			answer, _, err := c.client.Deployments().Promote(ctx, d.ID, groups, nil)
			return answer, err
		}, "promoted", true)
}

func deploymentUnblock() *spec {
	return deploymentVerb(spec{name: "deployment unblock", synopsis: "Unblock a deployment of a multi-region job",
		help: `Lets a deployment end that waits for other regions. Only deployments of multi-region jobs wait so; any other is refused.`},
		noFlags, func(ctx context.Context, c *call, d *structs.Deployment) (*structs.DeploymentUpdateResponse, error) {
			answer, _, err := c.client.Deployments().Unblock(ctx, d.ID, nil)
			return answer, err
		}, "unblocked", true)
}
