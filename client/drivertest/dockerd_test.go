package drivertest

import (
	"bytes"
	"os"
	"testing"
)

// An engine of one's own starts, holds an image over a restart, and goes when it is told to.
func TestDockerd(t *testing.T) {
	if why := DockerdMissing(); why != "" {
		t.Skip(why)
	}
	dir := t.TempDir()
	d, err := StartDockerd(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.ImportBusybox(t.Context(), "busybox", "test"); err != nil {
		t.Error(err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if d, err = StartDockerd(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := d.post(t.Context(), "/images/busybox:test/tag?repo=again", &bytes.Buffer{}); err != nil {
		t.Errorf("tag of the kept image: %v", err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Socket); err == nil {
		t.Error("the socket is still there")
	}
}
