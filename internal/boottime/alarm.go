package boottime

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm rings at a moment of the boot-time clock. Other than an ordinary timer it is not late by the time for which the
// machine slept.
type Alarm struct {
	// C gets a value when the alarm rings. It may also get one for a moment that has been moved since: look at the clock.
	C <-chan struct{}

	c     chan struct{}
	clock Clock
	file  *os.File // nil: the timer stands in
	fd    int      // of file, whose own method would make it block
	done  chan struct{}

	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// NewAlarm makes an alarm that is not set. Close it.
func NewAlarm(clock Clock) *Alarm {
	a := &Alarm{c: make(chan struct{}, 1), clock: clock, done: make(chan struct{})}
	a.C = a.c
	if _, real := clock.(system); real {
		if fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err == nil {
			a.file, a.fd = os.NewFile(uintptr(fd), "alarm"), fd
		}
	}
	if a.file == nil {
		close(a.done)
	} else {
		go a.listen()
	}
	return a
}

// listen reads expirations until the file is closed.
func (a *Alarm) listen() {
	defer close(a.done)
	var buf [8]byte
	for {
		if _, err := io.ReadFull(a.file, buf[:]); err != nil && !errors.Is(err, unix.ECANCELED) {
			return
		}
		a.ring()
	}
}

func (a *Alarm) ring() {
	select {
	case a.c <- struct{}{}:
	default:
	}
}

// Set makes the alarm ring when the clock shows at, counted since boot, at once when that has passed; it forgets any
// earlier moment.
func (a *Alarm) Set(at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if a.file == nil {
		now, _ := a.clock.Boot()
		if a.timer != nil {
			a.timer.Stop()
		}
		a.timer = time.AfterFunc(at-now, a.ring)
		return
	}
	if SetTimerfd(a.fd, at) != nil {
		a.ring() // whoever listens looks at the clock itself
	}
}

// Close ends the alarm.
func (a *Alarm) Close() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.file != nil {
		_ = a.file.Close()
	}
	a.mu.Unlock()
	<-a.done
}

// SetTimerfd arms a timerfd of CLOCK_BOOTTIME for the moment at.
func SetTimerfd(fd int, at time.Duration) error {
	at = max(at, 1) // 0 would disarm it
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}, nil)
}
