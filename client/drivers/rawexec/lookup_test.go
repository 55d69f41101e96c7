package rawexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/supervisor"
)

func TestLookCommand(t *testing.T) {
	root := t.TempDir()
	file := func(path string, mode os.FileMode) string {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	task := filepath.Join(root, "task")
	local, own := file("task/local/both", 0o644), file("task/own", 0o755)
	file("task/both", 0o755)
	inDir := file("task/local/bin/tool", 0o644)
	taskPath, hostPath := file("taskbin/tool1", 0o755), file("hostbin/tool2", 0o755)
	file("hostbin/tool1", 0o755)
	plain := file("hostbin/plain", 0o644)
	if err := os.Symlink("../../hostbin/plain", filepath.Join(task, "local", "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ command, want, fault string }{
		{"both", local, ""},
		{"own", own, ""},
		{"local/bin/tool", inDir, ""},
		{"bin/tool", inDir, ""},
		{"tool1", taskPath, ""},
		{"tool2", hostPath, ""},
		{hostPath, hostPath, ""},
		{"plain", "", "executable file not found in task directory or $PATH"},
		{plain, "", "it is not executable"},
		{root, "", "is a directory"},
		{"none", "", "executable file not found in task directory or $PATH"},
		{"dir/none", "", "executable file not found"},
		{"/there/is/none", "", "executable file not found"},
		{"../hostbin/tool2", "", "executable file not found"},
	} {
		got, err := lookCommand(tt.command, task, filepath.Dir(taskPath)+":relative", filepath.Dir(hostPath))
		if got != tt.want || (err == nil) != (tt.fault == "") || (err != nil && !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: got %q, %v", tt.command, got, err)
		}
	}
	if _, err := lookCommand("link", task, "", ""); err != nil {
		t.Errorf("link: %v", err)
	}
	for path, mode := range map[string]os.FileMode{local: 0o755, plain: 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestConfigValues(t *testing.T) {
	c, err := parseConfig(map[string]any{"command": "x", "args": []any{"a", 1, int64(2), 2.5, true}, "work_dir": "/tmp", "oom_score_adj": 7.0})
	if err != nil || fmt.Sprint(c) != "{x [a 1 2 2.5 true] /tmp 7 [] map[] }" {
		t.Errorf("got %v, %v", c, err)
	}
	if _, err := parseConfig(map[string]any{"command": "${NOMAD_TASK_DIR}/x", "work_dir": "${NOMAD_TASK_DIR}"}); err != nil {
		t.Error(err)
	}
	if _, err := parseConfig(map[string]any{"command": "x", "args": []any{[]any{}}, "oom_score_adj": 1.5}); err == nil ||
		!strings.Contains(err.Error(), "element 0") || !strings.Contains(err.Error(), "whole number") {
		t.Error(err)
	}
}

func TestIDRanges(t *testing.T) {
	r, err := ParseIDRanges("0, 10-15,22")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uint32]bool{0: true, 1: false, 9: false, 10: true, 15: true, 16: false, 22: true} {
		if r.Contain(id) != want {
			t.Errorf("%d: %v", id, !want)
		}
	}
	if _, err := ParseIDRanges("5-1,x,3,-"); err == nil || !strings.Contains(err.Error(), "3 errors") {
		t.Error(err)
	}
}

func TestDeniedAndUnknownUsers(t *testing.T) {
	uids, _ := ParseIDRanges("65534")
	gids, _ := ParseIDRanges("0")
	for _, tt := range []struct {
		cfg        Config
		user, want string
		final      bool
	}{
		{Config{DeniedUIDs: uids}, "nobody", "denied", true},
		{Config{DeniedGIDs: gids}, "root", "denied", true},
		{Config{}, "there-is-no-such-user", "look up user", false},
		{Config{Disabled: true}, "", "disabled", true},
	} {
		d := New(tt.cfg)
		_, err := d.Start(context.Background(), &driver.TaskConfig{ID: "a", User: tt.user, Config: map[string]any{"command": "/bin/true"}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, driver.ErrUnrecoverable) != tt.final {
			t.Errorf("%s: %v", tt.user, err)
		}
	}
	if h := New(Config{Disabled: true}).Fingerprint(context.Background()); h.Detected || h.Healthy {
		t.Errorf("got %+v", h)
	}
	if h := New(Config{}).Fingerprint(context.Background()); !h.Healthy || h.Attributes["driver.raw_exec"] != "1" {
		t.Errorf("got %+v", h)
	}
}

func TestUsage(t *testing.T) {
	at := time.Unix(1000, 0)
	before := sample{at: at, procs: map[int]supervisor.ProcStats{1: {PID: 1, UserTicks: 100, SystemTicks: 10}, 2: {PID: 2, UserTicks: 500}}}
	now := sample{at: at.Add(2 * time.Second), procs: map[int]supervisor.ProcStats{
		1: {PID: 1, UserTicks: 200, SystemTicks: 30, RSS: 1000, Swap: 5}, 2: {PID: 2, UserTicks: 20, RSS: 24}, 3: {PID: 3, SystemTicks: 40}}}
	u := usageBetween(before, now, 2000)
	r := u.ResourceUsage
	// Process 2 is another one of the same number: it counts from nothing.
	if r.MemoryStats.RSS != 1024 || r.MemoryStats.Swap != 5 || r.CpuStats.UserMode != 60 || r.CpuStats.SystemMode != 30 || r.CpuStats.Percent != 90 || r.CpuStats.TotalTicks != 1800 {
		t.Errorf("got %+v %+v", r.MemoryStats, r.CpuStats)
	}
	if p := u.Pids["1"]; len(u.Pids) != 3 || p.CpuStats.UserMode != 50 || p.CpuStats.SystemMode != 10 || p.MemoryStats.RSS != 1000 {
		t.Errorf("got %+v", u.Pids)
	}
	if u := usageBetween(now, now, 2000); u.ResourceUsage.CpuStats.Percent != 0 {
		t.Errorf("no time passed: %+v", u.ResourceUsage.CpuStats)
	}
}
