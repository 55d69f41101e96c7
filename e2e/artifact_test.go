package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// script is a web server whose answer to everything is a shell script.
func script(t *testing.T, text string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// endless is a web server that never comes to the end of its first answers. What asks and what hangs up is told.
func endless(t *testing.T, first int32) (url string, asked, gone chan struct{}) {
	t.Helper()
	asked, gone = make(chan struct{}, 9), make(chan struct{}, 9)
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) > first {
			_, _ = w.Write([]byte("exec sleep 600"))
			return
		}
		_, _ = w.Write([]byte("half of it"))
		_ = http.NewResponseController(w).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked, gone
}

func awaitSignal(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-limited(t).Done():
		t.Fatalf("%s did not come", what)
	}
}

// fetches makes a job that runs what its artifact brings.
func fetches(id, source string, change func(*structs.TaskGroup, *structs.TaskArtifact)) *structs.Job {
	return job(id, "", func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		a := &structs.TaskArtifact{GetterSource: &source, RelativeDest: structs.Ptr("local/run.sh"), GetterMode: structs.Ptr("file")}
		task.Artifacts = []*structs.TaskArtifact{a}
		task.Config["args"] = []any{"local/run.sh"}
		g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(1), Delay: structs.Ptr(time.Second), Mode: structs.Ptr("fail")}
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
		if change != nil {
			change(g, a)
		}
	})
}

// TestATaskRunsWhatItFetched fetches once, although the task is restarted and the agent dies.
func TestATaskRunsWhatItFetched(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	said := filepath.Join(a.Dir, "said")
	url, asked := script(t, "echo ran >> "+said+"; [ $(wc -l < "+said+") = 1 ] && exit 1; exec sleep 600")
	register(t, a.Client, fetches("runs", url+"/x.sh", nil))
	list := awaitAllocs(t, a.Client, "runs", "a second start", func(l []*structs.AllocationListStub) bool {
		return len(l) == 1 && l[0].TaskStates["t"] != nil && l[0].TaskStates["t"].State == structs.TaskStateRunning && l[0].TaskStates["t"].Restarts == 1
	})
	var kinds []string
	for _, e := range list[0].TaskStates["t"].Events {
		kinds = append(kinds, e.Type)
	}
	want := []string{structs.TaskReceived, structs.TaskSetup, "Downloading Artifacts", structs.TaskStarted, structs.TaskTerminated, structs.TaskRestarting,
		structs.TaskStarted}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %q, want %q", kinds, want)
	}
	a.Kill()
	a.Start()
	awaitAllocs(t, a.Client, "runs", "the task taken over", func(l []*structs.AllocationListStub) bool {
		return hasEvent(l[0].TaskStates["t"], structs.TaskReattached)
	})
	if n := asked.Load(); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}

// TestArtifactsThatCannotBe fail the task with an event that says why, and nothing runs. Only what may be better next time
// is tried again.
func TestArtifactsThatCannotBe(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	ran := filepath.Join(a.Dir, "ran")
	url, _ := script(t, "touch "+ran)
	for id, tt := range map[string]struct {
		source, destination, checksum, want string
		again                               bool
	}{
		"checksum":    {source: url + "/x", checksum: "sha256:" + strings.Repeat("0", 64), want: "checksums did not match: expected sha256 0000", again: true},
		"source":      {source: "s3::" + url + "/x", want: `"s3" is no way to fetch a source that this node has: http, https and git`},
		"destination": {source: url + "/x", destination: "${NOMAD_ALLOC_DIR}/../../evil", want: "leads out of the directory of the allocation"},
		"host":        {source: "file:///etc/passwd", want: "files of the node are not shown to artifacts"},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			register(t, a.Client, fetches(id, tt.source, func(_ *structs.TaskGroup, x *structs.TaskArtifact) {
				if tt.checksum != "" {
					x.GetterOptions = map[string]string{"checksum": tt.checksum}
				}
				if tt.destination != "" {
					x.RelativeDest = &tt.destination
				}
			}))
			s := awaitStatus(t, a.Client, id, structs.AllocClientStatusFailed).TaskStates["t"]
			failed := slices.DeleteFunc(slices.Clone(s.Events), func(e *structs.TaskEvent) bool { return e.Type != "Failed Artifact Download" })
			if len(failed) == 0 || !strings.Contains(failed[0].DisplayMessage, tt.want) || !strings.Contains(failed[0].Details["download_error"], tt.want) {
				t.Fatalf("no event tells of %q: %+v", tt.want, s.Events)
			}
			if again := len(failed) == 2; again != tt.again || s.Failed != true {
				t.Errorf("it failed %d times", len(failed))
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(ran); err == nil {
			t.Error("something was run")
		}
	})
}

// fetching lists the processes that fetch for an agent's allocations.
func fetching(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range paths {
		if at, err := os.Readlink(p + "/cwd"); err == nil && strings.HasPrefix(at, dir) && strings.Contains(at, "/.artifact-") {
			line, _ := os.ReadFile(p + "/cmdline")
			found = append(found, fmt.Sprintf("%s %q", p, line))
		}
	}
	return found
}

// TestAStopEndsAFetch ends at once, by HTTP and by git, and leaves no process and no file.
func TestAStopEndsAFetch(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	for id, source := range map[string]string{"http": "%s/x", "git": "git::%s/x.git//y"} {
		t.Run(id, func(t *testing.T) {
			url, asked, gone := endless(t, 9)
			register(t, a.Client, fetches(id, fmt.Sprintf(source, url), nil))
			awaitSignal(t, "the question", asked)
			if len(fetching(t, a.Dir)) == 0 {
				t.Error("nobody fetches: the test would prove nothing")
			}
			a.quick("a stop of a task that fetches", func() { a.ok("job", "stop", "-detach", id); awaitEnded(t, a.Client, id, 1) })
			awaitSignal(t, "the end of the connection", gone)
			if left := fetching(t, a.Dir); len(left) > 0 {
				t.Errorf("these still run: %v", left)
			}
			files, err := filepath.Glob(filepath.Join(a.Dir, "data", "alloc", "*", "t", "local", "*"))
			hidden, _ := filepath.Glob(filepath.Join(a.Dir, "data", "alloc", "*", "t", "local", ".*"))
			if err != nil || len(files)+len(hidden) > 0 {
				t.Errorf("left: %v %v, %v", files, hidden, err)
			}
		})
	}
}

// TestAnAgentKilledWhileItFetches takes the fetching process along; the next agent fetches anew and starts the task.
func TestAnAgentKilledWhileItFetches(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	url, asked, gone := endless(t, 1)
	register(t, a.Client, fetches("anew", url+"/x", nil))
	awaitSignal(t, "the question", asked)
	a.Kill()
	awaitSignal(t, "the end of the connection", gone)
	a.Start()
	list := awaitAllocs(t, a.Client, "anew", "a running task", func(l []*structs.AllocationListStub) bool {
		return len(l) == 1 && l[0].TaskStates["t"] != nil && l[0].TaskStates["t"].State == structs.TaskStateRunning
	})
	if s := list[0].TaskStates["t"]; s.Restarts != 0 || hasEvent(s, "Failed Artifact Download") {
		t.Errorf("%+v", s)
	}
	hidden, err := filepath.Glob(filepath.Join(a.Dir, "data", "alloc", "*", "t", "local", ".*"))
	if err != nil || len(hidden) > 0 {
		t.Errorf("left: %v, %v", hidden, err)
	}
}

// The page about artifacts is true.
func TestThePageAboutArtifactsIsTrue(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	s := newShell(t, a)
	srv := httptest.NewServer(http.FileServer(http.Dir(s.dir)))
	defer srv.Close()
	s.env = append(s.env, "NOMAD_VAR_files="+srv.URL)
	s.walk("../docs/artifacts.md")
}
