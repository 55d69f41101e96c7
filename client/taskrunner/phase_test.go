package taskrunner

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase Phase
		in    inputs
		want  step
	}{
		{"waits for its turn", Waiting, inputs{}, idle},
		{"its turn", Waiting, inputs{Released: true}, begin},
		{"its turn, but the agent does not know its assignments yet", Waiting, inputs{Released: true, Hold: true}, idle},
		{"stopped before its turn", Waiting, inputs{Stop: true}, runStop},
		{"stopped in prestart", Prestart, inputs{Stop: true}, runStop},
		{"prestart", Prestart, inputs{}, runPrestart},
		{"start", Starting, inputs{}, startDriver},
		{"stopped before the start", Starting, inputs{Stop: true}, runStop},
		{"poststart", Poststart, inputs{}, runPoststart},
		{"stopped in poststart", Poststart, inputs{Stop: true}, runPreKill},
		{"ended in poststart", Poststart, inputs{Ended: true, Stop: true}, handleExit},
		{"runs", Running, inputs{}, idle},
		{"is to restart", Running, inputs{Restart: true}, runPreKill},
		{"is to stop", Running, inputs{Stop: true}, runPreKill},
		{"ended by itself", Running, inputs{Ended: true}, handleExit},
		{"hooks before the delay", PreKill, inputs{Stop: true, NoDelay: true}, runPreKill},
		{"shutdown_delay", Delaying, inputs{Stop: true, Left: time.Second}, idle},
		{"shutdown_delay is over", Delaying, inputs{Stop: true}, beginKill},
		{"shutdown_delay is cut", Delaying, inputs{Stop: true, NoDelay: true, Left: time.Hour}, beginKill},
		{"ended within shutdown_delay", Delaying, inputs{Stop: true, Ended: true, Left: time.Hour}, handleExit},
		{"kill_timeout", Killing, inputs{Stop: true, KillSent: true, Left: time.Second}, idle},
		{"kill_timeout after a restart of the agent", Killing, inputs{Stop: true, Left: time.Second}, beginKill},
		{"exit to be handled", Exited, inputs{}, handleExit},
		{"restart delay", Backoff, inputs{Left: time.Second}, idle},
		{"restart delay is over", Backoff, inputs{}, begin},
		{"restart delay is over, on hold", Backoff, inputs{Hold: true}, idle},
		{"stopped within the restart delay", Backoff, inputs{Stop: true, Left: time.Hour}, runStop},
		{"down with its allocation, in prestart", Prestart, inputs{Restart: true, Park: true}, park},
		{"before the start", Starting, inputs{Restart: true, Park: true}, park},
		{"from the restart delay", Backoff, inputs{Restart: true, Park: true, Left: time.Hour}, park},
		{"waits to be released", Backoff, inputs{Parked: true}, idle},
		{"stopped meanwhile", Backoff, inputs{Parked: true, Stop: true}, runStop},
		{"last hooks", Finishing, inputs{}, runStop},
		{"over", Dead, inputs{Released: true, Stop: true, Restart: true}, over},
	} {
		if got := next(c.phase, c.in); got != c.want {
			t.Errorf("%s: step %d, want %d", c.name, got, c.want)
		}
	}
}
