package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		unix.Exit(Main(os.Args[2:])) // os.Exit takes a second in a race build, whose settings lie in a /proc that it cannot see
	}
	os.Exit(m.Run())
}

// control keeps the events.
type control struct {
	hook.TaskControl
	mu     sync.Mutex
	events []*structs.TaskEvent
}

func (c *control) Emit(events ...*structs.TaskEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, events...)
}

// stand is a task with directories and a hook.
type stand struct {
	*Hook
	t       *testing.T
	task    *structs.Task
	control *control
	data    map[string]string
	attempt uint64
}

func newStand(t *testing.T) *stand {
	t.Helper()
	dir := &allocdir.Dir{Path: filepath.Join(t.TempDir(), "alloc-id")}
	if err := errors.Join(dir.Build(), os.MkdirAll(dir.LocalDir("web"), 0o777), os.MkdirAll(dir.SecretsDir("web"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, task: &structs.Task{Name: "web"}, control: &control{}}
	s.Hook = &Hook{Dir: dir, Config: &Config{Settings: DefaultSettings(), Logger: hclog.NewNullLogger(), Process: Process{Command: []string{os.Args[0], Command}}}}
	s.Env = func(r *hook.TaskRequest) *taskenv.Env {
		return taskenv.Build(taskenv.Input{Alloc: r.Alloc, Task: r.Task, AllocDir: "/alloc", LocalDir: "/local", SecretsDir: "/secrets"})
	}
	s.Owner = func(string) (allocdir.Owner, error) { return allocdir.Owner{UID: 1, GID: 1}, nil }
	return s
}

// fetch runs the hook as before a start, and keeps what it asks to.
func (s *stand) fetch(ctx context.Context) (*hook.TaskResponse, error) {
	s.attempt++
	resp := &hook.TaskResponse{}
	err := s.Prestart(ctx, &hook.TaskRequest{Alloc: &structs.Allocation{ID: "alloc-id", JobID: "j"}, Task: s.task, Attempt: s.attempt,
		Data: s.data, Control: s.control}, resp)
	if resp.Data != nil {
		s.data = resp.Data
	}
	return resp, err
}

// add gives the task a block.
func (s *stand) add(source string, change func(*structs.TaskArtifact)) {
	a := &structs.TaskArtifact{GetterSource: &source, GetterMode: structs.Ptr("any"), RelativeDest: structs.Ptr("local/"), GetterOptions: map[string]string{}}
	if change != nil {
		change(a)
	}
	s.task.Artifacts = append(s.task.Artifacts, a)
}

// good fetches and gives what then lies in the task's directory: paths and contents, links as "-> TARGET".
func (s *stand) good() map[string]string {
	s.t.Helper()
	if _, err := s.fetch(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return s.tree()
}

// bad fetches, wants an error with these words, and nothing left.
func (s *stand) bad(words string, final bool) {
	s.t.Helper()
	before := s.tree()
	resp, err := s.fetch(s.t.Context())
	if err == nil || !strings.Contains(err.Error(), words) || errors.Is(err, driver.ErrUnrecoverable) != final {
		s.t.Fatalf("error %v (final %v), want %q, final %v", err, errors.Is(err, driver.ErrUnrecoverable), words, final)
	}
	if len(resp.Events) != 1 || resp.Events[0].Type != "Failed Artifact Download" || resp.Events[0].DownloadError != err.Error() {
		s.t.Errorf("events %+v", resp.Events)
	}
	if after := s.tree(); !maps.Equal(before, after) {
		s.t.Errorf("it left %v, before there was %v", after, before)
	}
}

func (s *stand) tree() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	root := s.Dir.TaskDir("web")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		switch {
		case err != nil || d.IsDir() && d.Name() != ".git":
		case d.IsDir():
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			out[rel], err = os.Readlink(p)
			out[rel] = "-> " + out[rel]
		default:
			var data []byte
			data, err = os.ReadFile(p)
			out[rel] = string(data)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// serve answers with files by path.
func serve(t *testing.T, files map[string]string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(data))
	}))
	t.Cleanup(srv.Close)
	return srv
}

// member is one of an archive.
type member struct {
	tar.Header
	content string
}

func regular(name, content string) member {
	return member{Header: tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}, content: content}
}

func link(name, target string) member {
	return member{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}}
}

func hardLink(name, target string) member {
	return member{Header: tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target, Mode: 0o644}}
}

// tarred is a plain tar.
func tarred(t *testing.T, members ...member) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		m.Size = int64(len(m.content))
		if err := w.WriteHeader(&m.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// gzipped packs a stream.
func gzipped(t *testing.T, content string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(content))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAFileAndAnArchive(t *testing.T) {
	srv := serve(t, map[string]string{"/a.txt": "hello", "/b.tar.gz": gzipped(t, tarred(t, regular("bin/run", "#!"), link("bin/r", "run")))})
	s := newStand(t)
	s.add(srv.URL+"/a.txt", nil)
	s.add(srv.URL+"/b.tar.gz", func(a *structs.TaskArtifact) { a.RelativeDest = structs.Ptr("local/b") })
	s.add(srv.URL+"/a.txt", func(a *structs.TaskArtifact) {
		a.GetterMode, a.RelativeDest = structs.Ptr("file"), structs.Ptr("${NOMAD_SECRETS_DIR}/${NOMAD_TASK_NAME}.txt")
	})
	want := map[string]string{"local/a.txt": "hello", "local/b/bin/run": "#!", "local/b/bin/r": "-> run", "secrets/web.txt": "hello"}
	if got := s.good(); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if s.data[doneKey] != "1,2,3" || !slices.ContainsFunc(s.control.events, func(e *structs.TaskEvent) bool { return e.Type == "Downloading Artifacts" }) {
		t.Errorf("data %v events %v", s.data, s.control.events)
	}
	info, err := os.Stat(filepath.Join(s.Dir.TaskDir("web"), "local/b/bin/run"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info, err)
	}
}

// TestWhatIsRefused leaves nothing behind, in the task's directory or outside of it.
func TestWhatIsRefused(t *testing.T) {
	srv := serve(t, map[string]string{
		"/a.txt":            "hello",
		"/traversal.tar.gz": gzipped(t, tarred(t, regular("../../../escaped", "x"))),
		"/absolute.tar.gz":  gzipped(t, tarred(t, link("out", "/etc"), regular("out/escaped", "x"))),
		"/relative.tar.gz":  gzipped(t, tarred(t, link("out", "../../../.."), regular("out/escaped", "x"))),
		"/hard.tar.gz":      gzipped(t, tarred(t, hardLink("passwd", "/etc/passwd"))),
		"/device.tar.gz":    gzipped(t, tarred(t, member{Header: tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}})),
	})
	for name, tt := range map[string]struct {
		source string
		change func(*structs.TaskArtifact)
		words  string
		final  bool
	}{
		"checksum": {srv.URL + "/a.txt", func(a *structs.TaskArtifact) {
			a.GetterOptions["checksum"] = "sha256:" + strings.Repeat("0", 64)
		}, "checksums did not match", false},
		"traversal in an archive":    {srv.URL + "/traversal.tar.gz", nil, "leads out of the archive", false},
		"absolute link":              {srv.URL + "/absolute.tar.gz", nil, "path escapes", false},
		"link that leads out":        {srv.URL + "/relative.tar.gz", nil, "path escapes", false},
		"hard link to the host":      {srv.URL + "/hard.tar.gz", nil, "unpack", false},
		"device":                     {srv.URL + "/device.tar.gz", nil, "it is a device", false},
		"destination that leads out": {srv.URL + "/a.txt", func(a *structs.TaskArtifact) { a.RelativeDest = structs.Ptr("../../out") }, "leads out of the directory", true},
		"a file of the host":         {"file:///etc/passwd", nil, "files of the node", true},
		"a path of the host":         {"/etc/passwd", nil, "files of the node", true},
		"not found":                  {srv.URL + "/none", nil, "404", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			s.add(tt.source, tt.change)
			s.bad(tt.words, tt.final)
			root := filepath.Dir(s.Dir.Path)
			_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
				if strings.Contains(p, "escaped") || d != nil && d.Name() == "out" {
					t.Errorf("it made %s", p)
				}
				return err
			})
		})
	}
}
