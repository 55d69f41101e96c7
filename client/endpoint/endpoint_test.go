package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeAlloc struct {
	over  chan struct{}
	calls []string
	terms allocrunner.Terms
	err   error
}

func (a *fakeAlloc) HasTask(name string) bool        { return name == "web" }
func (a *fakeAlloc) TaskOver(string) <-chan struct{} { return a.over }
func (a *fakeAlloc) RestartTask(name string, t allocrunner.Terms) error {
	a.calls, a.terms = append(a.calls, "task "+name), t
	return a.err
}
func (a *fakeAlloc) RestartRunning(t allocrunner.Terms) error {
	a.calls, a.terms = append(a.calls, "running"), t
	return a.err
}
func (a *fakeAlloc) RestartAll(t allocrunner.Terms) error {
	a.calls, a.terms = append(a.calls, "all"), t
	return a.err
}
func (a *fakeAlloc) Signal(_ context.Context, task, signal string) error {
	a.calls = append(a.calls, "signal "+task+" "+signal)
	return a.err
}
func (a *fakeAlloc) Stats(_ context.Context, task string) (map[string]*structs.TaskResourceUsage, error) {
	if task != "" && task != "web" {
		return nil, structs.Errorf(structs.CodeNotFound, "unknown task %q", task)
	}
	return map[string]*structs.TaskResourceUsage{"web": {ResourceUsage: &structs.ResourceUsage{
		MemoryStats: &structs.MemoryStats{RSS: 5}, CpuStats: &structs.CpuStats{Percent: 1},
	}}}, nil
}

// Exec plays the command: it answers what it reads in capitals until there is no more.
func (a *fakeAlloc) Exec(ctx context.Context, task string, req *driver.ExecRequest) (int, error) {
	a.calls = append(a.calls, fmt.Sprint("exec ", task, req.Command, req.TTY))
	switch req.Command[0] {
	case "fail":
		return 0, a.err
	case "wait":
		<-ctx.Done()
		close(a.over)
		return 0, context.Cause(ctx)
	}
	if req.TTY {
		fmt.Fprint(req.Stdout, <-req.Resize)
	}
	text, err := io.ReadAll(req.Stdin)
	if err != nil {
		return 0, err
	}
	fmt.Fprint(req.Stdout, strings.ToUpper(string(text)))
	fmt.Fprint(req.Stderr, len(text))
	return 5, nil
}
func (a *fakeAlloc) Action(task, action string) ([]string, error) {
	if action != "shout" {
		return nil, structs.Errorf(structs.CodeNotFound, "task %q has no action %q", task, action)
	}
	return []string{"shout", "loud"}, nil
}

type fakeBackend struct {
	root      string
	alloc     *fakeAlloc
	collected []string
}

func (b *fakeBackend) Alloc(id string) (Alloc, error) {
	if id != "a1" {
		return nil, structs.Errorf(structs.CodeNotFound, "Unknown allocation %q", id)
	}
	return b.alloc, nil
}
func (b *fakeBackend) AllocDir(id string) (*allocdir.Dir, error) {
	if _, err := b.Alloc(id); err != nil {
		return nil, err
	}
	return allocdir.New(b.root, id), nil
}
func (b *fakeBackend) HostStats(context.Context) (*structs.HostStats, error) {
	return &structs.HostStats{Uptime: 7}, nil
}
func (b *fakeBackend) CollectAll(context.Context) { b.collected = append(b.collected, "*") }
func (b *fakeBackend) CollectAlloc(_ context.Context, id string) error {
	b.collected = append(b.collected, id)
	return nil
}
func (b *fakeBackend) Metadata() *structs.NodeMetaResponse {
	return &structs.NodeMetaResponse{Meta: map[string]string{"rack": "r1"}, Dynamic: map[string]*string{}}
}
func (b *fakeBackend) ApplyMetadata(_ context.Context, changes map[string]*string) (*structs.NodeMetaResponse, error) {
	if len(changes) == 0 {
		return nil, structs.Errorf(structs.CodeInvalid, "missing required Meta object")
	}
	return &structs.NodeMetaResponse{Dynamic: changes}, nil
}

type server struct {
	*httptest.Server
	t       *testing.T
	backend *fakeBackend
	dir     *allocdir.Dir
}

func newServer(t *testing.T) *server {
	t.Helper()
	b := &fakeBackend{root: t.TempDir(), alloc: &fakeAlloc{over: make(chan struct{})}}
	mux, err := route.NewPublic(route.Config{Routes: Routes(b, Locate{})})
	if err != nil {
		t.Fatal(err)
	}
	dir := allocdir.New(b.root, "a1")
	if err := dir.Build(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir.Path, "web", "secrets"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := &server{Server: httptest.NewServer(mux), t: t, backend: b, dir: dir}
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

func (s *server) write(name, text string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir.Path, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// call sends a request and gives status and body.
func (s *server) call(method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func (s *server) says(method, path, body string, status int, text string) {
	s.t.Helper()
	if gotStatus, got := s.call(method, path, body); gotStatus != status || !strings.Contains(got, text) {
		s.t.Errorf("%s %s: %d %q, want %d %q", method, path, gotStatus, got, status, text)
	}
}

func TestFilesAreListedAndRead(t *testing.T) {
	s := newServer(t)
	s.write("alloc/data/x.txt", "0123456789")
	s.says("GET", "/v1/client/fs/ls/a1", "", 200, `"Name":"alloc"`)
	s.says("GET", "/v1/client/fs/ls/a1?path=/alloc/data", "", 200, `"Name":"x.txt","IsDir":false,"Size":10,"FileMode":"-rw-r--r--"`)
	s.says("GET", "/v1/client/fs/stat/a1?path=alloc/data/x.txt", "", 200, `"ContentType":"text/plain`)
	s.says("GET", "/v1/client/fs/stat/a1?path=alloc/data/x.txt&pretty", "", 200, "\n    \"Size\": 10")
	s.says("GET", "/v1/client/fs/cat/a1?path=alloc/data/x.txt", "", 200, "0123456789")
	if _, got := s.call("GET", "/v1/client/fs/readat/a1?path=alloc/data/x.txt&offset=2&limit=3", ""); got != "234" {
		t.Errorf("read %q", got)
	}
	if _, got := s.call("GET", "/v1/client/fs/readat/a1?path=alloc/data/x.txt&offset=8&limit=0", ""); got != "89" {
		t.Errorf("read %q", got)
	}
}

func TestBadRequestsAreTold(t *testing.T) {
	s := newServer(t)
	s.write("alloc/data/x.txt", "0123456789")
	for _, c := range []struct {
		path   string
		status int
		text   string
	}{
		{"fs/ls/nope", 404, `Unknown allocation "nope"`},
		{"fs/logs/nope?task=web&type=stdout", 404, `Unknown allocation "nope"`},
		{"fs/stat/a1", 400, "must provide a file name"},
		{"fs/cat/a1?path=alloc/none", 404, "alloc/none"},
		{"fs/cat/a1?path=../../../etc/passwd", 404, "etc/passwd"},
		{"fs/cat/a1?path=web/secrets/token", 403, "prohibited"},
		{"fs/readat/a1?path=alloc/data/x.txt&offset=a&limit=1", 400, "offset"},
		{"fs/readat/a1?path=alloc/data/x.txt&offset=-1&limit=1", 400, "negative"},
		{"fs/stream/a1?path=alloc/data/x.txt&origin=middle", 400, "origin"},
		{"fs/stream/a1?path=alloc/data/x.txt&follow=perhaps", 400, "follow"},
		{"fs/logs/a1?type=stdout", 400, "must provide task name"},
		{"fs/logs/a1?task=web&type=both", 400, "log type"},
		{"fs/logs/a1?task=db&type=stdout", 404, `unknown task "db"`},
		{"allocation/nope/stats", 404, `Unknown allocation "nope"`},
		{"allocation/a1/stats?task=db", 404, `unknown task "db"`},
	} {
		s.says("GET", "/v1/client/"+c.path, "", c.status, c.text)
	}
	s.says("PUT", "/v1/client/allocation/a1/restart", "{", 400, "cannot read request")
	s.says("PUT", "/v1/client/allocation/a1/restart", `{"AllTasks":true,"TaskName":"web"}`, 400, "either")
	s.says("PUT", "/v1/client/allocation/a1/restart?kill_timeout=soon", "", 400, "kill_timeout")
	s.says("PUT", "/v1/client/allocation/a1/restart?kill_timeout=", "", 400, "kill_timeout")
	s.says("PUT", "/v1/client/allocation/a1/signal", `{}`, 400, "signal")
	s.says("GET", "/v1/client/allocation/a1/signal", "", 405, "")
}

func TestLogs(t *testing.T) {
	s := newServer(t)
	s.write("alloc/logs/web.stdout.0", "one\n")
	s.write("alloc/logs/web.stdout.1", "two\n")
	status, body := s.call("GET", "/v1/client/fs/logs/a1?task=web&type=stdout", "")
	var text strings.Builder
	for dec := json.NewDecoder(strings.NewReader(body)); dec.More(); {
		var f structs.StreamFrame
		if err := dec.Decode(&f); err != nil {
			t.Fatal(err)
		}
		text.Write(f.Data)
	}
	if status != 200 || text.String() != "one\ntwo\n" {
		t.Fatalf("%d %q", status, body)
	}
	if _, got := s.call("GET", "/v1/client/fs/logs/a1?task=web&type=stdout&plain=true", ""); got != "one\ntwo\n" {
		t.Errorf("plain %q", got)
	}
	if _, got := s.call("GET", "/v1/client/fs/logs/a1?task=web&type=stdout&plain=true&origin=end&offset=3", ""); got != "wo\n" {
		t.Errorf("from the end %q", got)
	}
}

func TestFollowedLogsEndWithTheirTask(t *testing.T) {
	s := newServer(t)
	s.write("alloc/logs/web.stdout.0", "one\n")
	res, err := http.Get(s.URL + "/v1/client/fs/logs/a1?task=web&type=stdout&plain=true&follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{"one\n", "two\n", "three\n"} {
		if got, err := lines.ReadString('\n'); got != want || err != nil {
			t.Fatalf("read %q, error %v", got, err)
		}
		switch want {
		case "one\n":
			s.write("alloc/logs/web.stdout.0", "two\n")
		case "two\n":
			s.write("alloc/logs/web.stdout.1", "three\n")
		}
	}
	close(s.backend.alloc.over)
	if rest, err := io.ReadAll(lines); len(rest) != 0 || err != nil {
		t.Fatalf("then %q, error %v", rest, err)
	}
}

func TestFollowedFileEndsWithItsReader(t *testing.T) {
	s := newServer(t)
	s.write("alloc/data/x", "one\n")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/v1/client/fs/stream/a1?path=alloc/data/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var f structs.StreamFrame
	dec := json.NewDecoder(res.Body)
	if err := dec.Decode(&f); err != nil || string(f.Data) != "one\n" || f.File != "alloc/data/x" {
		t.Fatalf("frame %+v, error %v", f, err)
	}
	s.write("alloc/data/x", "two\n")
	if err := dec.Decode(&f); err != nil || string(f.Data) != "two\n" || f.Offset != 4 {
		t.Fatalf("frame %+v, error %v", f, err)
	}
	cancel()
	res.Body.Close()
}

func TestRestartAndSignal(t *testing.T) {
	s := newServer(t)
	s.says("PUT", "/v1/client/allocation/a1/restart", "", 200, "{}")
	s.says("POST", "/v1/client/allocation/a1/restart", `{"TaskName":"web"}`, 200, "{}")
	s.says("PUT", "/v1/client/allocation/a1/restart?no_shutdown_delay=true&kill_timeout=3s", `{"AllTasks":true}`, 200, "{}")
	if terms := s.backend.alloc.terms; !terms.NoShutdownDelay || *terms.KillTimeout != 3*time.Second {
		t.Errorf("terms %+v", terms)
	}
	s.says("PUT", "/v1/client/allocation/a1/signal", `{"Task":"web","Signal":"SIGHUP"}`, 200, "{}")
	if got := strings.Join(s.backend.alloc.calls, "|"); got != "running|task web|all|signal web SIGHUP" {
		t.Errorf("calls %q", got)
	}
	s.backend.alloc.err = taskrunner.ErrNotRunning
	s.says("PUT", "/v1/client/allocation/a1/restart", `{"TaskName":"web"}`, 500, "Task not running")
}

func TestFiguresAndGarbage(t *testing.T) {
	s := newServer(t)
	s.says("GET", "/v1/client/stats", "", 200, `"Uptime":7`)
	s.says("GET", "/v1/client/allocation/a1/stats", "", 200, `"RSS":5`)
	s.says("GET", "/v1/client/metadata", "", 200, `{"Meta":{"rack":"r1"},"Dynamic":{},"Static":null}`)
	s.says("POST", "/v1/client/metadata", `{"NodeID":"n","Meta":{"a":"1","b":null}}`, 200, `"Dynamic":{"a":"1","b":null}`)
	s.says("PUT", "/v1/client/metadata", `{}`, 400, "missing required Meta object")
	s.says("PUT", "/v1/client/metadata", `{"Meta":{"a":1}}`, 400, "decode request")
	s.says("DELETE", "/v1/client/metadata", "", 405, "")
	s.says("GET", "/v1/client/gc", "", 200, "{}")
	s.says("PUT", "/v1/client/allocation/a1/gc", "", 200, "{}")
	if got := strings.Join(s.backend.collected, " "); got != "* a1" {
		t.Errorf("collected %q", got)
	}
}

func (a *fakeAlloc) Checks() structs.AllocCheckStatuses {
	return structs.AllocCheckStatuses{"c1": {ID: "c1", Check: "up", Group: "j.g[0]", Mode: structs.CheckHealthiness,
		Service: "web", Status: structs.CheckSuccess, StatusCode: 200, Output: "nomad: http ok", Timestamp: 1700000000}}
}
