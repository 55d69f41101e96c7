package mock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{
		Open:    func(*testing.T) driver.Driver { return New(nil) },
		Forgets: true,
		Exit:    func(code int) drivertest.Config { return drivertest.Config{"exit_code": code} },
		Run:     func() drivertest.Config { return drivertest.Config{"run_for": "1h"} },
		RunFor: func(d time.Duration, code int) drivertest.Config {
			return drivertest.Config{"run_for": d.String(), "exit_code": code}
		},
		Stubborn: func() drivertest.Config {
			return drivertest.Config{"run_for": "1h", "kill_after": "1h", "stdout_string": "ready"}
		},
		Output: func(out, errs string) drivertest.Config {
			return drivertest.Config{"stdout_string": out, "stderr_string": errs}
		},
		Bad: []drivertest.BadConfig{{
			Config: drivertest.Config{"run_for": "soon", "exit_code": "x", "runs_for": "1s", "stdout_string": 1, "start_error_recoverable": "perhaps"},
			Faults: []string{`"run_for" must be a duration`, `"exit_code" must be a whole number`, `no option "runs_for"`,
				`"stdout_string" must be a string`, `"start_error_recoverable" must be true or false`},
		}},
	})
}

func TestScriptedStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := New(nil), t.Context()
		_, err := d.Start(ctx, &driver.TaskConfig{ID: "a", Config: map[string]any{"start_error": "no luck"}})
		if !errors.Is(err, driver.ErrUnrecoverable) {
			t.Errorf("got %v", err)
		}
		_, err = d.Start(ctx, &driver.TaskConfig{ID: "a", Config: map[string]any{"start_error": "no luck", "start_error_recoverable": true}})
		if err == nil || errors.Is(err, driver.ErrUnrecoverable) || err.Error() != "no luck" {
			t.Errorf("got %v", err)
		}
		began := time.Now()
		if _, err := d.Start(ctx, &driver.TaskConfig{ID: "a", Config: map[string]any{"start_block_for": "3s", "run_for": 5e9, "exit_err_msg": "broken"}}); err != nil {
			t.Fatal(err)
		}
		r, err := d.Wait(ctx, "a")
		if err != nil || r.Err == nil || r.Err.Error() != "broken" || r.Successful() {
			t.Errorf("got %+v: %v", r, err)
		}
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("took %v", took)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := d.Start(short, &driver.TaskConfig{ID: "b", Config: map[string]any{"start_block_for": "1h"}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestScriptedStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := New(nil), t.Context()
		start := func(id string) {
			_, err := d.Start(ctx, &driver.TaskConfig{ID: id, Config: map[string]any{"run_for": "1h", "kill_after": "4s", "signal_error": "deaf"}})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			timeout, took time.Duration
			signal        int
		}{{10 * time.Second, 4 * time.Second, 2}, {3 * time.Second, 3 * time.Second, 9}} {
			start("a")
			began := time.Now()
			if err := d.Stop(ctx, "a", "", tt.timeout); err != nil {
				t.Fatal(err)
			}
			r, _ := d.Wait(ctx, "a")
			if took := time.Since(began); took != tt.took || r.Signal != tt.signal {
				t.Errorf("timeout %v: took %v, %+v", tt.timeout, took, r)
			}
			if err := d.Signal(ctx, "a", "SIGHUP"); err == nil || err.Error() != "deaf" {
				t.Errorf("got %v", err)
			}
			d.Destroy(ctx, "a", false)
		}
	})
}

func TestRecoveredTaskEndsWhenItWouldHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		began := time.Now()
		old := New(nil)
		h, err := old.Start(ctx, &driver.TaskConfig{ID: "a", Config: map[string]any{"run_for": "10s", "exit_code": 3}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second) // of the bubble's clock
		d := New(nil)
		if err := d.Recover(ctx, h); err != nil {
			t.Fatal(err)
		}
		r, err := d.Wait(ctx, "a")
		if err != nil || r.ExitCode != 3 || !r.At.Equal(began.Add(10*time.Second)) || time.Since(began) != 10*time.Second {
			t.Errorf("got %+v after %v: %v", r, time.Since(began), err)
		}
	})
}
