package boottime

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineSurvivesBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := Fake{ID: "boot-1"}
		d := After(clock, time.Minute)
		time.Sleep(20 * time.Second)
		if got := d.Remaining(clock); got != 40*time.Second {
			t.Fatalf("remaining %s", got)
		}
		if got := d.Remaining(Fake{ID: "boot-2"}); got != 40*time.Second {
			t.Fatalf("remaining after a boot %s", got)
		}
		time.Sleep(time.Minute)
		if got := d.Remaining(clock); got != -20*time.Second {
			t.Fatalf("remaining of a passed deadline %s", got)
		}
	})
}

func TestSystemClockMovesForward(t *testing.T) {
	c := System()
	a, id := c.Boot()
	b, again := c.Boot()
	if b < a || a <= 0 {
		t.Fatalf("boot time went from %s to %s", a, b)
	}
	if id != again {
		t.Fatalf("boot id changed from %q to %q", id, again)
	}
	if (Deadline{}).IsZero() == false || After(c, 0).IsZero() {
		t.Fatal("only the zero value is no deadline")
	}
}

func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := Fake{ID: "boot-1"}
		a := NewAlarm(clock)
		defer a.Close()
		now, _ := clock.Boot()
		a.Set(now + time.Hour)
		a.Set(now + time.Minute)
		<-a.C
		if later, _ := clock.Boot(); later-now != time.Minute {
			t.Errorf("it rang after %s", later-now)
		}
	})
	clock := System()
	a := NewAlarm(clock)
	now, _ := clock.Boot()
	a.Set(now + time.Hour)
	a.Set(now + 20*time.Millisecond)
	<-a.C
	if later, _ := clock.Boot(); later-now < 20*time.Millisecond {
		t.Errorf("it rang after %s", later-now)
	}
	a.Set(now) // has passed
	<-a.C
	a.Set(now + time.Hour)
	a.Close()
	a.Set(now)
}
