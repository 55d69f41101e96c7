package endpoint

import "time"

// stopOptions are those of the stops which a request causes. Where only the scheduler knows what stops they ride on
// its evaluation or on the drain.
type stopOptions struct {
	noShutdownDelay bool
	killTimeout     *time.Duration
}

// stopOptions reads them from the parameters.
func (q *query) stopOptions() (out stopOptions, err error) {
	if out.noShutdownDelay, err = q.flag("no_shutdown_delay"); err != nil {
		return out, err
	}
	out.killTimeout, err = q.duration("kill_timeout")
	return out, err
}
