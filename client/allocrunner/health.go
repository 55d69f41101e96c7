package allocrunner

import (
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/structs"
)

// Defaults of the update block, for jobs whose deployment came without one.
const (
	defaultMinHealthyTime  = 10 * time.Second
	defaultHealthyDeadline = 5 * time.Minute
)

// healthView is what health is judged by.
type healthView struct {
	MinHealthyTime  time.Duration
	HealthyDeadline time.Duration
	Begun           time.Time // when the allocation began to start
	Tasks           []taskView
	StartedAt       []time.Time // of Tasks
	Checks          []checkView // those which have to pass
}

// checkView is a check as health sees it.
type checkView struct {
	Service string
	Name    string
	check.Standing
}

// verdict is what health was found to be. Healthy is nil while that cannot be said: look again after Again.
type verdict struct {
	Healthy *bool
	Again   time.Duration
	Reason  string // why it is not healthy
}

// judge says whether the allocation is healthy. It is when every task which should run has run for MinHealthyTime
// without interruption, every check has passed for as long, and ephemeral tasks have succeeded; it is not when a task
// failed or the deadline passed.
func judge(v healthView, now time.Time) verdict {
	yes, no := true, false
	ready, since := true, v.Begun
	reason := ""
	wait := func(format string, args ...any) {
		if ready {
			reason = fmt.Sprintf(format, args...)
		}
		ready = false
	}
	for i, t := range v.Tasks {
		switch {
		case t.Failed:
			return verdict{Healthy: &no, Reason: fmt.Sprintf("Unhealthy because of failed task %q", t.Name)}
		case t.Role == rolePoststop:
		case t.Role == rolePrestart || t.Role == rolePoststart:
			if !t.Dead {
				wait("Task %q has not ended by healthy_deadline of %s", t.Name, v.HealthyDeadline)
			}
		case t.Dead:
			// It should run for as long as the allocation does.
			return verdict{Healthy: &no, Reason: fmt.Sprintf("Unhealthy because task %q has ended", t.Name)}
		case !t.Running:
			wait("Task %q not running for min_healthy_time of %s by healthy_deadline of %s", t.Name, v.MinHealthyTime, v.HealthyDeadline)
		case v.StartedAt[i].After(since):
			since = v.StartedAt[i]
		}
	}
	for _, c := range v.Checks {
		switch {
		case c.Passing.IsZero():
			wait("Check %q of service %q not passing for min_healthy_time of %s by healthy_deadline of %s: %s",
				c.Name, c.Service, v.MinHealthyTime, v.HealthyDeadline, c.text())
		case c.Passing.After(since):
			since = c.Passing
		}
	}
	left := v.Begun.Add(v.HealthyDeadline).Sub(now)
	if ready {
		remains := since.Add(v.MinHealthyTime).Sub(now)
		if remains <= 0 {
			return verdict{Healthy: &yes}
		}
		if remains <= left {
			return verdict{Again: remains}
		}
		reason = fmt.Sprintf("Not healthy for min_healthy_time of %s by healthy_deadline of %s: well only since %s",
			v.MinHealthyTime, v.HealthyDeadline, since.UTC().Format(time.RFC3339))
	}
	if left <= 0 {
		return verdict{Healthy: &no, Reason: reason}
	}
	return verdict{Again: left}
}

// text is what a check that does not pass says.
func (c checkView) text() string {
	switch {
	case c.Status == "":
		return "it is not asked, since its task does not run"
	case c.Output == "":
		return "it is " + c.Status
	}
	output := []rune(c.Output)
	if len(output) > maxReason {
		output = append(output[:maxReason], '…')
	}
	return fmt.Sprintf("it is %s: %s", c.Status, string(output))
}

// maxReason bounds how many characters of a check's output an event has.
const maxReason = 256

// checksOf are the checks that have to pass before the allocation is healthy, as they stand now.
func checksOf(alloc *structs.Allocation, stand func(allocID string) map[string]check.Standing) []checkView {
	group := alloc.Group()
	if group == nil || stand == nil {
		return nil
	}
	var out []checkView
	var known map[string]check.Standing
	add := func(task string, services []*structs.Service) {
		for _, s := range services {
			for i := range s.Checks {
				c := &s.Checks[i]
				if s.Provider != structs.ServiceProviderNomad || c.OnUpdate == structs.OnUpdateIgnore {
					continue
				}
				if known == nil {
					known = stand(alloc.ID)
				}
				out = append(out, checkView{s.Name, c.Name, known[structs.CheckID(alloc.ID, task, s, c)]})
			}
		}
	}
	add("", group.Services)
	for _, t := range group.Tasks {
		if role := roleOf(t); role != rolePrestart && role != rolePoststart && role != rolePoststop {
			add(t.Name, t.Services)
		}
	}
	return out
}

// healthTerms says by which terms the allocation's health is judged: those of its update block while it is in a
// deployment, else those of its migrate block, for drains wait until what was moved is well. Nobody asks for the health
// of others, and manual health is an operator's word. by says whether checks count too.
func healthTerms(alloc *structs.Allocation) (minHealthy, deadline time.Duration, by string, wanted bool) {
	minHealthy, deadline, by = defaultMinHealthyTime, defaultHealthyDeadline, structs.HealthCheckChecks
	group := alloc.Group()
	take := func(least, most *time.Duration) {
		if least != nil {
			minHealthy = *least
		}
		if most != nil && *most > 0 {
			deadline = *most
		}
	}
	switch {
	case alloc.DeploymentID == "" && (group == nil || group.Migrate == nil):
		return 0, 0, "", false
	case alloc.DeploymentID == "":
		by = structs.Val(group.Migrate.HealthCheck)
		take(group.Migrate.MinHealthyTime, group.Migrate.HealthyDeadline)
	case group != nil && group.Update != nil:
		if by = structs.Val(group.Update.HealthCheck); by == structs.HealthCheckManual {
			return 0, 0, "", false
		}
		take(group.Update.MinHealthyTime, group.Update.HealthyDeadline)
	}
	return minHealthy, deadline, by, true
}
