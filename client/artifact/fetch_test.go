package artifact

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

func mode(m, destination string) func(*structs.TaskArtifact) {
	return func(a *structs.TaskArtifact) { a.GetterMode, a.RelativeDest = &m, &destination }
}

func checksum(text string) func(*structs.TaskArtifact) {
	return func(a *structs.TaskArtifact) { a.GetterOptions["checksum"] = text }
}

func TestChecksumsOfDownloads(t *testing.T) {
	srv := serve(t, map[string]string{"/abc": "abc", "/abc.tar": tarred(t, regular("x", "y")), "/SUMS": sha1Of + "  abc\n", "/SUM": sha1Of,
		"/long": sha1Of + strings.Repeat(" ", 2<<20)})
	for sum, want := range map[string]string{
		"sha1:" + sha1Of:                  "",
		"file:" + srv.URL + "/SUMS":       "",
		"file:" + srv.URL + "/SUM":        "",
		"file:" + srv.URL + "/none":       "fetch checksums: " + strings.TrimPrefix(srv.URL, "http://") + " answered 404 Not Found",
		"file:" + srv.URL + "/long":       "above 1048576 bytes",
		"file:/etc/passwd":                "files of the node are not shown",
		"sha1:" + strings.Repeat("0", 40): "checksums did not match: expected sha1 0000000000000000000000000000000000000000, got " + sha1Of,
		"crc32:00":                        "is not of type md5, sha1, sha256 or sha512",
	} {
		s := newStand(t)
		s.add(srv.URL+"/abc", checksum(sum))
		if want != "" {
			s.bad(want, strings.Contains(want, "type") || strings.Contains(want, "shown"))
		} else if got := s.good(); got["local/abc"] != "abc" {
			t.Errorf("%s: %v", sum, got)
		}
	}
	s := newStand(t)
	s.add(srv.URL+"/abc.tar", checksum("md5:"+strings.Repeat("0", 32)))
	s.bad("checksums did not match", false) // before anything is unpacked
}

// TestHeadersAndCredentials sends what the block says, with what it refers to put in, and shows none of it in errors.
func TestHeadersAndCredentials(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.URL.Path == "/x" {
			fmt.Fprintf(w, "%s %s %s:%s %s", r.Header.Get("X-Job"), r.Host, user, password, r.URL.RawQuery)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer srv.Close()
	s := newStand(t)
	with := func(a *structs.TaskArtifact) {
		a.GetterHeaders = map[string]string{"X-Job": "${NOMAD_JOB_ID}/${NOMAD_TASK_NAME}", "Host": "files.test"}
	}
	source := strings.Replace(srv.URL, "://", "://me:pass%2Fword@", 1)
	s.add(source+"/x?token=abcdef", with)
	if got := s.good()["local/x"]; got != "j/web files.test me:pass/word token=abcdef" {
		t.Errorf("got %q", got)
	}
	s = newStand(t)
	s.add(source+"/secret?token=abcdef", with)
	s.bad("artifact 1 ("+srv.URL+"/secret): "+strings.TrimPrefix(srv.URL, "http://")+" answered 403 Forbidden", false)
}

func TestCertificates(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	defer srv.Close()
	s := newStand(t)
	s.add(srv.URL+"/x", nil)
	s.bad("certificate", false)
	s.task.Artifacts[0].GetterInsecure = structs.Ptr(true)
	if got := s.good(); got["local/x"] != "x" {
		t.Errorf("%v", got)
	}
}

// TestDownloadsThatAreNotWhole refuses a body that ends early and one that is too large, with and without a length.
func TestDownloadsThatAreNotWhole(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		case "/cut":
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/announced":
			w.Header().Set("Content-Length", "2000")
			_, _ = w.Write(make([]byte, 2000))
		case "/streamed":
			for range 20 {
				_, _ = w.Write(make([]byte, 100))
				_ = http.NewResponseController(w).Flush()
			}
		case "/partial":
			w.WriteHeader(http.StatusPartialContent)
		}
	}))
	t.Cleanup(srv.Close)
	for file, want := range map[string]string{"/short": "unexpected EOF", "/cut": "unexpected EOF", "/announced": "file has 2000 bytes, above 1000",
		"/streamed": "file is above 1000 bytes", "/partial": "206 Partial Content"} {
		s := newStand(t)
		s.Config.Settings.HTTPMaxSize = 1000
		s.add(srv.URL+file, nil)
		s.bad(want, false)
	}
}

// slow never ends its answer; asked tells of each question, gone of each asker that hung up.
func slow(t *testing.T) (srv *httptest.Server, asked, gone chan struct{}) {
	t.Helper()
	asked, gone = make(chan struct{}, 9), make(chan struct{}, 9)
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	return srv, asked, gone
}

func TestADownloadThatTakesTooLong(t *testing.T) {
	t.Parallel()
	srv, _, _ := slow(t)
	s := newStand(t)
	s.Config.Settings.HTTPTimeout = 200 * time.Millisecond
	s.add(srv.URL+"/x", nil)
	s.bad("the download took longer than the node's configuration allows (200ms)", false)
}

func TestModes(t *testing.T) {
	srv := serve(t, map[string]string{"/a": "A", "/one.tar": tarred(t, regular("d/one", "1")), "/two.tar": tarred(t, regular("d/1", "1"), regular("d/2", "2"))})
	s := newStand(t)
	s.add(srv.URL+"/one.tar", mode("dir", "local/dir"))
	s.add(srv.URL+"/one.tar", mode("file", "local/sub/file"))
	s.add(srv.URL+"/two.tar//d/2", mode("file", "two"))
	s.add(srv.URL+"/two.tar//*", mode("any", "../alloc/data"))
	s.add(srv.URL+"/a?filename=b", mode("any", ""))
	s.add(srv.URL+"/a", mode("file", "/secrets/a"))
	want := map[string]string{"local/dir/d/one": "1", "local/sub/file": "1", "two": "2", "local/b": "A", "secrets/a": "A"}
	if got := s.good(); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if data, err := os.ReadFile(filepath.Join(s.Dir.SharedDir(), "data", "2")); string(data) != "2" {
		t.Errorf("%q %v", data, err)
	}
	for _, tt := range []struct {
		source string
		change func(*structs.TaskArtifact)
		want   string
		final  bool
	}{
		{srv.URL + "/a", mode("dir", "local/x"), "mode dir needs an archive", true},
		{srv.URL + "/a//sub", nil, "needs an archive or a repository", true},
		{srv.URL + "/two.tar", mode("file", "local/x"), "holds more than one file", true},
		{srv.URL + "/two.tar//none", nil, `there is no "none"`, false},
		{srv.URL + "/two.tar//d/*", nil, "matches several", false},
		{srv.URL + "/", nil, "source names no file", true},
		{srv.URL + "/a", mode("file", "local/"), "is a directory, not a file", true},
		{srv.URL + "/a", mode("most", "local/"), "none of any, file and dir", true},
		{"s3::" + srv.URL + "/a", nil, "no way to fetch", true},
	} {
		s := newStand(t)
		s.add(tt.source, tt.change)
		s.bad(tt.want, tt.final)
	}
}

// TestDestinations joins directories and replaces files, and refuses links that a task may have made.
func TestDestinations(t *testing.T) {
	victim := t.TempDir()
	srv := serve(t, map[string]string{"/a": "new", "/x.tar": tarred(t, regular("d/a", "new"), regular("d/b", "new"))})
	s := newStand(t)
	local := s.Dir.LocalDir("web")
	write := func(name, content string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(local, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(local, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("d/a", "old")
	write("d/kept", "old")
	s.add(srv.URL+"/x.tar", nil)
	if got := s.good(); !maps.Equal(got, map[string]string{"local/d/a": "new", "local/d/b": "new", "local/d/kept": "old"}) {
		t.Errorf("%v", got)
	}
	for want, tt := range map[string]struct {
		name, target, source, destination string
	}{
		`"out" on the way is a link`:            {"out", victim, "/a", "local/out/in"},
		`"in" on the way is a link`:             {"in", "d", "/a", "local/in"},
		`put "a" in its place: there is a link`: {"a", filepath.Join(victim, "a"), "/a", "local"},
		`put "d" in its place: there is a link`: {"d", victim, "/x.tar", "local"},
	} {
		s := newStand(t)
		if err := os.Symlink(tt.target, filepath.Join(s.Dir.LocalDir("web"), tt.name)); err != nil {
			t.Fatal(err)
		}
		s.add(srv.URL+tt.source, mode("any", tt.destination))
		s.bad(want, false)
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
	s = newStand(t)
	if err := os.Mkdir(filepath.Join(s.Dir.LocalDir("web"), "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.add(srv.URL+"/a", nil)
	s.bad("of a file and a directory one would replace the other", false)
	for _, out := range []string{"../../out", "local/../../../x", "${NOMAD_ALLOC_DIR}/../../x"} {
		s = newStand(t)
		s.add(srv.URL+"/a", mode("any", out))
		s.bad("leads out of the directory of the allocation", true)
	}
}

func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	srv := serve(t, map[string]string{"/x.tar": tarred(t, regular("d/a", "A"), link("d/l", "a"))})
	s := newStand(t)
	s.add(srv.URL+"/x.tar", func(a *structs.TaskArtifact) { a.Chown = true })
	s.good()
	for _, name := range []string{"d", "d/a", "d/l"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(s.Dir.LocalDir("web"), name), &st); err != nil || st.Uid != 1 || st.Gid != 1 {
			t.Errorf("%s belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
		}
	}
}

// TestWhatIsThereIsNotFetchedAgain asks a server once for each artifact, whatever happens to the others.
func TestWhatIsThereIsNotFetchedAgain(t *testing.T) {
	var asked, ready atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" && ready.Load() == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		asked.Add(1)
		_, _ = w.Write([]byte("x"))
	}))
	defer srv.Close()
	s := newStand(t)
	s.data = map[string]string{doneKey: "1"} // as an agent before this one noted
	for _, file := range []string{"/first", "/late"} {
		s.add(srv.URL+file, nil)
	}
	s.bad("503", false)
	ready.Store(1)
	if got := s.good(); !maps.Equal(got, map[string]string{"local/late": "x"}) || asked.Load() != 1 || s.data[doneKey] != "1,2" {
		t.Errorf("%v, asked %d, data %v", got, asked.Load(), s.data)
	}
	resp, err := s.fetch(t.Context())
	if err != nil || !resp.Once || asked.Load() != 1 {
		t.Errorf("%+v %v, asked %d", resp, err, asked.Load())
	}
}

// TestAFullDisk is an error like any other, and leaves room for the next try.
func TestAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	s := newStand(t)
	local := s.Dir.LocalDir("web")
	if err := unix.Mount("tmpfs", local, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(local, unix.MNT_DETACH) }()
	srv := serve(t, map[string]string{"/large": strings.Repeat("x", 2<<20), "/bomb.tar.gz": gzipped(t, tarred(t, regular("zeros", strings.Repeat("\x00", 2<<20)))), "/small": "x"})
	for _, file := range []string{"/large", "/bomb.tar.gz"} {
		s.task.Artifacts = nil
		s.add(srv.URL+file, nil)
		s.bad("no space left on device", false)
	}
	s.task.Artifacts = nil
	s.add(srv.URL+"/small", nil)
	if got := s.good(); !maps.Equal(got, map[string]string{"local/small": "x"}) {
		t.Errorf("%v", got)
	}
}
