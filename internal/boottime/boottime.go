// Package boottime measures waits which must survive a restart of the process: a deadline is a reading of the
// boot-time clock (CLOCK_BOOTTIME, which counts suspend) together with the id of the boot, and the wall clock for the
// case that the machine was booted in between. Callers are the runners of the node agent and its lease.
package boottime

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads the wall clock and the boot-time clock. System is the real one; tests hand in a Fake.
type Clock interface {
	Now() time.Time
	// Boot gives the time since boot and the id of that boot.
	Boot() (sinceBoot time.Duration, bootID string)
}

// Deadline is a moment which another process of this machine can still read. The zero value is no deadline.
type Deadline struct {
	BootID string        `cbor:"b"`
	At     time.Duration `cbor:"a"` // since boot
	Wall   time.Time     `cbor:"w"`
}

// After is the deadline d from now.
func After(c Clock, d time.Duration) Deadline {
	since, id := c.Boot()
	return Deadline{BootID: id, At: since + d, Wall: c.Now().Add(d)}
}

// MomentAt is the moment at which the boot-time clock of this boot shows since.
func MomentAt(c Clock, since time.Duration) Deadline {
	now, id := c.Boot()
	return Deadline{BootID: id, At: since, Wall: c.Now().Add(since - now)}
}

// IsZero says that there is no deadline.
func (d Deadline) IsZero() bool { return d.BootID == "" && d.At == 0 && d.Wall.IsZero() }

// Remaining is the time left until d, 0 or less when it has passed. After a reboot the wall clock decides.
func (d Deadline) Remaining(c Clock) time.Duration {
	since, id := c.Boot()
	if id == d.BootID {
		return d.At - since
	}
	return d.Wall.Sub(c.Now())
}

// System is the machine's clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) Boot() (time.Duration, string) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(time.Now().UnixNano()), "" // no such clock: the wall clock is all there is
	}
	return time.Duration(ts.Nano()), bootID()
}

var bootID = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
})

// Fake is a clock for tests whose boot time runs with time.Now, so that testing/synctest governs it.
type Fake struct{ ID string }

// Now is time.Now.
func (f Fake) Now() time.Time { return time.Now() }

// Boot is the time since the epoch of 2000-01-01, where synctest begins, under f.ID.
func (f Fake) Boot() (time.Duration, string) {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), f.ID
}
