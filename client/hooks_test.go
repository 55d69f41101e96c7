package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/internal/fakedriver"
	"github.com/nomadlite/nomadlite/structs"
)

func TestUnsupportedGroupsAndTasksAreRefused(t *testing.T) {
	job := jobOf("j", "service", mockTask(nil))
	group := job.TaskGroups[0]
	group.Networks = []*structs.NetworkResource{{Mode: "bridge"}}
	group.Volumes = map[string]*structs.VolumeRequest{"data": {Type: "csi"}}
	err := (&supportedGroup{}).Prerun(context.Background(), &hook.AllocRequest{Alloc: &structs.Allocation{Job: job, TaskGroup: "g"}}, nil)
	for _, want := range []string{`network mode "bridge"`, `volume "data"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	registry, err := driver.NewRegistry(fakedriver.New())
	if err != nil {
		t.Fatal(err)
	}
	h := &validTask{drivers: registry, interpolate: func(*hook.TaskRequest) map[string]any { return nil }}
	task := &structs.Task{Driver: "docker", Vault: &structs.Vault{}}
	err = h.Prestart(context.Background(), &hook.TaskRequest{Task: task}, nil)
	for _, want := range []string{`no driver "docker"`, "vault"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if !errors.Is(err, driver.ErrUnrecoverable) {
		t.Errorf("error %v may be retried", err)
	}
}

func TestStickyDiskMovesData(t *testing.T) {
	root := t.TempDir()
	job := jobOf("j", "service", mockTask(nil))
	job.TaskGroups[0].EphemeralDisk = &structs.EphemeralDisk{Sticky: structs.Ptr(true)}
	before, after := allocdir.New(root, "old"), allocdir.New(root, "new")
	for _, d := range []*allocdir.Dir{before, after} {
		if err := d.Build(); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(before.SharedDir(), "data"), before.LocalDir("t")} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "kept"), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	h := &stickyDisk{allocsDir: root, dir: after}
	req := &hook.AllocRequest{Alloc: &structs.Allocation{ID: "new", PreviousAllocation: "old", Job: job, TaskGroup: "g"}}
	for range 2 { // a second time after a crash finds nothing left to move
		if err := h.Prerun(context.Background(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(after.SharedDir(), "data"), after.LocalDir("t")} {
		if _, err := os.Stat(filepath.Join(dir, "kept")); err != nil {
			t.Error(err)
		}
	}
}

func TestPayloadIsWritten(t *testing.T) {
	dir := allocdir.New(t.TempDir(), "a1")
	job := jobOf("j", "batch", mockTask(nil))
	job.Payload = []byte("hello")
	req := &hook.TaskRequest{
		Alloc: &structs.Allocation{Job: job, TaskGroup: "g"},
		Task:  &structs.Task{Name: "t", DispatchPayload: &structs.DispatchPayloadConfig{File: "in/input.txt"}},
	}
	var resp hook.TaskResponse
	if err := (&payloadHook{dir: dir}).Prestart(context.Background(), req, &resp); err != nil || !resp.Once {
		t.Fatalf("error %v, once %v", err, resp.Once)
	}
	if data, err := os.ReadFile(filepath.Join(dir.LocalDir("t"), "in", "input.txt")); err != nil || string(data) != "hello" {
		t.Fatalf("wrote %q, error %v", data, err)
	}
	req.Task.DispatchPayload.File = "../../x"
	if err := (&payloadHook{dir: dir}).Prestart(context.Background(), req, &resp); !errors.Is(err, driver.ErrUnrecoverable) {
		t.Fatalf("error %v", err)
	}
}

func TestEnvironmentAndInterpolationReachTheTask(t *testing.T) {
	a := newAgent(t)
	a.cfg.Meta = map[string]string{"rack": "r7"}
	a.start()
	task := shell(`echo "$NOMAD_ALLOC_ID $NOMAD_TASK_NAME $RACK ` + "${meta.rack}" + `"; echo oops >&2`)
	task.Env = map[string]string{"RACK": "${meta.rack}"}
	a.servers.assign("a1", jobOf("j", "batch", task), nil)
	a.servers.untilStatus("a1", "complete")
	logs := filepath.Join(a.cfg.DataDir, "alloc", "a1", "alloc", "logs")
	for file, want := range map[string]string{"t.stdout.0": "a1 t r7 r7\n", "t.stderr.0": "oops\n"} {
		if data, err := os.ReadFile(filepath.Join(logs, file)); err != nil || string(data) != want {
			t.Errorf("%s holds %q, error %v", file, data, err)
		}
	}
}
