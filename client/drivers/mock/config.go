package mock

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/internal/scalar"
	"github.com/nomadlite/nomadlite/structs"
)

// Script is what a task does: its config block.
type Script struct {
	StartError            string        // start_error: starting fails
	StartErrorRecoverable bool          // start_error_recoverable: and may be tried again
	StartBlockFor         time.Duration // start_block_for: starting takes this long
	RunFor                time.Duration // run_for: it ends after this time; at once by default
	ExitCode              int           // exit_code
	ExitSignal            int           // exit_signal
	ExitErrMsg            string        // exit_err_msg: the driver reports an error with the exit
	KillAfter             time.Duration // kill_after: it ends this long after it was asked to
	SignalError           string        // signal_error: sending signals fails
	StdoutString          string        // stdout_string: written at the start,
	StdoutRepeat          int           // stdout_repeat: and this many times more,
	StdoutRepeatDuration  time.Duration // stdout_repeat_duration: this long apart
	StderrString          string        // stderr_string, stderr_repeat, stderr_repeat_duration: the same
	StderrRepeat          int
	StderrRepeatDuration  time.Duration
}

// parse reads a config block and tells all its faults at once.
func parse(config map[string]any) (Script, error) {
	var s Script
	var faults structs.Errors
	fields := map[string]any{
		"start_error": &s.StartError, "start_error_recoverable": &s.StartErrorRecoverable, "start_block_for": &s.StartBlockFor,
		"run_for": &s.RunFor, "exit_code": &s.ExitCode, "exit_signal": &s.ExitSignal, "exit_err_msg": &s.ExitErrMsg,
		"kill_after": &s.KillAfter, "signal_error": &s.SignalError,
		"stdout_string": &s.StdoutString, "stdout_repeat": &s.StdoutRepeat, "stdout_repeat_duration": &s.StdoutRepeatDuration,
		"stderr_string": &s.StderrString, "stderr_repeat": &s.StderrRepeat, "stderr_repeat_duration": &s.StderrRepeatDuration,
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		field, ok := fields[key]
		if !ok {
			faults.Addf("mock_driver has no option %q; it has %s", key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
			continue
		}
		if err := assign(field, config[key]); err != nil {
			faults.Addf("option %q %w", key, err)
		}
	}
	return s, faults.Err()
}

func assign(field, v any) error {
	switch field := field.(type) {
	case *string:
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("must be a string, not %v", v)
		}
		*field = s
	case *bool:
		switch v := v.(type) {
		case bool:
			*field = v
			return nil
		case string:
			if b, err := strconv.ParseBool(v); err == nil {
				*field = b
				return nil
			}
		}
		return fmt.Errorf("must be true or false, not %v", v)
	case *int:
		n, ok := scalar.Whole(v)
		if !ok {
			// Signals may be given by name.
			if name, isName := v.(string); isName {
				if sig, err := driver.ParseSignal(name); err == nil {
					*field = int(sig)
					return nil
				}
			}
			return fmt.Errorf("must be a whole number, not %v", v)
		}
		*field = int(n)
	case *time.Duration:
		if s, ok := v.(string); ok {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return fmt.Errorf("must be a duration like \"10s\", not %q", s)
			}
			*field = d
			return nil
		}
		n, ok := scalar.Whole(v)
		if !ok || n < 0 {
			return fmt.Errorf("must be a duration like \"10s\", not %v", v)
		}
		*field = time.Duration(n)
	}
	return nil
}
