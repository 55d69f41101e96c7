package allocdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

func build(t *testing.T) *Dir {
	t.Helper()
	d := New(t.TempDir(), "6e3a9d0c-0000-4000-8000-000000000001")
	if err := d.Build(); err != nil {
		t.Fatal(err)
	}
	if err := d.BuildTask(Task{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Destroy(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestLayout(t *testing.T) {
	d := build(t)
	for path, mode := range map[string]fs.FileMode{
		"": 0o755, "alloc": 0o777, "alloc/data": 0o777, "alloc/logs": 0o777, "alloc/tmp": 0o777 | fs.ModeSticky,
		"web": 0o777, "web/local": 0o777, "web/tmp": 0o777 | fs.ModeSticky, "web/secrets": 0o700,
	} {
		info, err := os.Stat(filepath.Join(d.Path, path))
		if err != nil || info.Mode() != mode|fs.ModeDir {
			t.Errorf("%q: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(d.LocalDir("web"), "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Build(), d.BuildTask(Task{Name: "web"})); err != nil { // again, as after a crash
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.LocalDir("web"), "keep")); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreInMemoryAndSmall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	d := build(t)
	for range 2 { // the second time it is mounted already
		if err := d.BuildTask(Task{Name: "db", Owner: Owner{UID: 65534, GID: 65534}}); err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(d.SecretsDir("db"), &st); err != nil {
		t.Fatal(err)
	}
	if st.Type != unix.TMPFS_MAGIC {
		t.Skip("this machine lets even root mount nothing")
	}
	if size := st.Blocks * uint64(st.Bsize); size != 1<<20 {
		t.Errorf("size %d", size)
	}
	info, err := os.Stat(d.SecretsDir("db"))
	if err != nil {
		t.Fatal(err)
	}
	if own := info.Sys().(*syscall.Stat_t); own.Uid != 65534 || own.Gid != 65534 {
		t.Errorf("owner %d:%d", own.Uid, own.Gid)
	}
	if mounts, err := mountsBelow(d.Path); err != nil || len(mounts) != 2 {
		t.Errorf("mounts %v, %v", mounts, err)
	}
}

func TestDestroyAfterACrash(t *testing.T) {
	d := build(t)
	// Mounted twice, as by an agent that died before it had noted the first.
	if os.Geteuid() == 0 {
		err := unix.Mount("tmpfs", d.SecretsDir("web"), "tmpfs", 0, "size=1m")
		if err != nil && !errors.Is(err, unix.EPERM) {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(d.Path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func TestDestroyFollowsNoLinks(t *testing.T) {
	d := build(t)
	outside := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(d.SharedDir(), "link")); err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestTaskNames(t *testing.T) {
	d := build(t)
	for _, name := range []string{"", ".", "..", "a/b", "alloc", "../x"} {
		if err := d.BuildTask(Task{Name: name}); structs.ErrorCode(err) != structs.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := os.Symlink("/tmp", d.TaskDir("evil")); err != nil {
		t.Fatal(err)
	}
	if err := d.BuildTask(Task{Name: "evil"}); err == nil {
		t.Error("a link passes for a directory")
	}
}

func TestReading(t *testing.T) {
	d := build(t)
	file := filepath.Join(d.LocalDir("web"), "page.html")
	if err := os.WriteFile(file, []byte("<html>hello"), 0o640); err != nil {
		t.Fatal(err)
	}
	list, err := d.List("web")
	var names []string
	for _, i := range list {
		names = append(names, fmt.Sprint(i.Name, i.IsDir))
	}
	if err != nil || strings.Join(names, " ") != "localtrue secretstrue tmptrue" {
		t.Errorf("%v, %v", names, err)
	}
	for _, p := range []string{"web/local/page.html", "/web/local/page.html", "web/../web/./local//page.html", "/../../web/local/page.html"} {
		info, err := d.Stat(p)
		if err != nil || info.Name != "page.html" || info.Size != 11 || info.IsDir || info.FileMode != "-rw-r-----" || !strings.HasPrefix(info.ContentType, "text/html") {
			t.Errorf("%s: %+v, %v", p, info, err)
		}
	}
	if info, err := d.Stat("/"); err != nil || !info.IsDir {
		t.Errorf("root: %+v, %v", info, err)
	}
	for _, tt := range []struct {
		offset, limit int64
		want          string
	}{{0, -1, "<html>hello"}, {6, 3, "hel"}, {6, 100, "hello"}, {100, 5, ""}, {0, 0, ""}} {
		r, err := d.ReadAt("web/local/page.html", tt.offset, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || string(data) != tt.want {
			t.Errorf("%d %d: %q, %v", tt.offset, tt.limit, data, err)
		}
		r.Close()
	}
}

func TestRefusals(t *testing.T) {
	d := build(t)
	shared := d.SharedDir()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.SecretsDir("web"), "key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"abs": outside, "up": "../../../../../../../../etc/passwd", "dir": "/", "in": "../web/secrets/key", "indir": "../web/secrets", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(shared, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(shared, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sock)
	in, err := os.Open(shared) // a socket's path may have no more than 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := unix.Bind(sock, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/sock", in.Fd())}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]structs.Code{
		"alloc/abs": structs.CodePermission, "alloc/up": structs.CodePermission, "alloc/dir/etc/passwd": structs.CodePermission,
		"web/secrets/key": structs.CodePermission, "web/secrets": structs.CodePermission, "alloc/../web/secrets/key": structs.CodePermission,
		"alloc/in": structs.CodePermission, "alloc/indir/key": structs.CodePermission,
		"alloc/nothing": structs.CodeNotFound, "web/local/x/y": structs.CodeNotFound, "../../etc/passwd": structs.CodeNotFound,
		"alloc/fifo": structs.CodeInvalid, "alloc": structs.CodeInvalid, "alloc/loop": structs.CodeInvalid,
		"alloc/" + strings.Repeat("n", 300): structs.CodeInvalid, "alloc/sock": structs.CodeInvalid, "alloc\x00": structs.CodeInvalid,
	} {
		if f, err := d.Open(path); err == nil || structs.ErrorCode(err) != want {
			t.Errorf("open %s: %v, %v", path, f, err)
		}
	}
	if _, err := d.List("web/secrets"); structs.ErrorCode(err) != structs.CodePermission {
		t.Errorf("list secrets: %v", err)
	}
	if _, err := d.List("alloc/fifo"); structs.ErrorCode(err) != structs.CodeInvalid {
		t.Errorf("list a file: %v", err)
	}
	if _, err := d.ReadAt("alloc/fifo", -1, 1); structs.ErrorCode(err) != structs.CodeInvalid {
		t.Errorf("negative offset: %v", err)
	}
	if _, err := New(d.Path, "none").List("/"); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Errorf("no directory: %v", err)
	}
}

func TestReadingBeyondTheEnd(t *testing.T) {
	d := build(t)
	if err := os.WriteFile(filepath.Join(d.SharedDir(), "x"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{5, 6, 1 << 40, 1 << 60, math.MaxInt64} {
		for _, limit := range []int64{-1, 3, math.MaxInt64} {
			r, err := d.ReadAt("alloc/x", offset, limit)
			if err != nil {
				t.Errorf("offset %d: %v", offset, err)
				continue
			}
			if data, err := io.ReadAll(r); len(data) > 0 || err != nil {
				t.Errorf("offset %d, limit %d: %q, %v", offset, limit, data, err)
			}
			r.Close()
		}
	}
}

func TestUnescapeMount(t *testing.T) {
	if got := unescapeMount(`/a\040b\011c\134d`); got != "/a b\tc\\d" {
		t.Errorf("got %q", got)
	}
}

// BenchmarkBuild builds and destroys the directories of an allocation with one task.
func BenchmarkBuild(b *testing.B) {
	root, n := b.TempDir(), 0
	for b.Loop() {
		d := New(root, fmt.Sprint(n))
		n++
		if err := errors.Join(d.Build(), d.BuildTask(Task{Name: "web"})); err != nil {
			b.Fatal(err)
		}
		if err := d.Destroy(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSecretsAreDropped with the file systems they are in, be there one, several or none.
func TestSecretsAreDropped(t *testing.T) {
	d := build(t)
	if err := d.BuildTask(Task{Name: "db"}); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // a second one over the first
		if err := unix.Mount("tmpfs", d.SecretsDir("db"), "tmpfs", 0, "size=1m"); err != nil {
			t.Logf("cannot mount: %v", err)
		}
	}
	outside := t.TempDir()
	for path, link := range map[string]string{"web/secrets/key": "", "db/secrets/key": "", "web/local/keep": "", "web/secrets/out": outside} {
		err := os.WriteFile(filepath.Join(d.Path, path), []byte("x"), 0o600)
		if link != "" {
			err = os.Symlink(link, filepath.Join(d.Path, path)+"side")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := d.DropSecrets(); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range []string{"web", "db"} {
		if entries, err := os.ReadDir(d.SecretsDir(task)); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v", task, entries, err)
		}
	}
	if mounts, err := mountsBelow(d.Path); err != nil || len(mounts) > 0 {
		t.Errorf("mounted: %v, %v", mounts, err)
	}
	for _, keep := range []string{filepath.Join(d.LocalDir("web"), "keep"), filepath.Join(outside, "keep")} {
		if _, err := os.Stat(keep); err != nil {
			t.Error(err)
		}
	}
	if err := New(t.TempDir(), "gone").DropSecrets(); err != nil {
		t.Error(err)
	}
}
