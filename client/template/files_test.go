package template

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

var plain = owner{mode: 0o640, uid: -1, gid: -1}

func testPlaces(t *testing.T) places {
	t.Helper()
	p := places{allocDir: filepath.Join(t.TempDir(), "alloc-id")}
	p.taskDir = p.allocDir + "/web"
	for _, dir := range []string{"alloc", "web/local", "web/secrets", "db/secrets"} {
		if err := os.MkdirAll(filepath.Join(p.allocDir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.seen = map[string]string{"/local": p.taskDir + "/local", "/secrets": p.taskDir + "/secrets", "/alloc": p.allocDir + "/alloc"}
	return p
}

func TestPlaces(t *testing.T) {
	p := testPlaces(t)
	for name, want := range map[string]string{
		"local/x": "web/local/x", "./local//x": "web/local/x", "local/../secrets/x": "web/secrets/x", "../alloc/x": "alloc/x", "x": "web/x",
		"/local/x": "web/local/x", "/alloc/x": "alloc/x", "/etc/passwd": "web/etc/passwd", p.allocDir + "/alloc/y": "alloc/y",
		"../../x": "", "local/../../../x": "", "/local/../../../x": "web/x", "..": "", "../../alloc-id-2/x": "", "a\x00b": "",
	} {
		got, err := p.find(name)
		if (err != nil) != (want == "") || got.rel != want || err == nil && got.root != p.allocDir {
			t.Errorf("%q: %+v, %v; want %q", name, got, err, want)
		}
	}
	p.free = true
	if got, err := p.find("/etc/hostname"); err != nil || got.root != "/" || got.rel != "etc/hostname" {
		t.Errorf("without confinement: %+v %v", got, err)
	}
}

func TestWriting(t *testing.T) {
	p := testPlaces(t)
	file, _ := p.find("local/new/dir/x")
	path := filepath.Join(p.taskDir, "local/new/dir/x")
	for i, tt := range []struct {
		data    string
		owner   owner
		changed bool
	}{{"a", plain, true}, {"a", plain, false}, {"a", owner{0o600, -1, -1}, false}, {"b", plain, true}, {"", plain, true}, {"", plain, false}} {
		changed, err := file.write([]byte(tt.data), tt.owner)
		data, readErr := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || readErr != nil || statErr != nil || changed != tt.changed || string(data) != tt.data || info.Mode() != tt.owner.mode {
			t.Errorf("%d: changed %v, %v, %q, %v", i, changed, err, data, info)
		}
	}
	if os.Geteuid() == 0 {
		if _, err := file.write([]byte("c"), owner{0o4755, 1234, 4321}); err != nil {
			t.Fatal(err)
		}
	} else if _, err := file.write(nil, owner{0o644, 1234, -1}); err == nil {
		t.Error("a file was given away without the right to")
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || os.Geteuid() == 0 && (st.Uid != 1234 || st.Gid != 4321 || st.Mode&0o7777 != 0o755) {
		t.Errorf("owner %d:%d, mode %o, %v", st.Uid, st.Gid, st.Mode, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left beside the file: %v, %v", left, err)
	}
}

func TestWritingRefusesLinks(t *testing.T) {
	p := testPlaces(t)
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("safe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"file": outside, "dir": filepath.Dir(outside), "other": "../../db/secrets", "dangling": "nothing"} {
		if err := os.Symlink(target, filepath.Join(p.taskDir, "local", link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"local/file", "local/dir/victim", "local/other/x", "local/dangling", "local", "local/file/x"} {
		file, err := p.find(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.write([]byte("x"), plain); structs.ErrorCode(err) != structs.CodePermission {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "safe" {
		t.Errorf("what is outside is %q, %v", data, err)
	}
	if left, _ := os.ReadDir(filepath.Join(p.allocDir, "db/secrets")); len(left) != 0 {
		t.Error("another task's secrets were written to")
	}
}

func TestReading(t *testing.T) {
	p := testPlaces(t)
	local := filepath.Join(p.taskDir, "local")
	huge, err := os.Create(filepath.Join(local, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Truncate(maxFile + 1); err != nil {
		t.Fatal(err)
	}
	_ = huge.Close()
	if err := unix.Mkfifo(filepath.Join(local, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"empty": "", "some": "text"} {
		if err := os.WriteFile(filepath.Join(local, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": "/etc/passwd", "in": "some"} {
		if err := os.Symlink(target, filepath.Join(local, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"empty": "", "some": "text", "in": "text"} {
		file, _ := p.find("local/" + name)
		if data, err := file.read(); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for name, want := range map[string]string{"huge": "above", "fifo": "no regular file", "out": "escapes", "none": "no such file", ".": "no regular file"} {
		file, _ := p.find("local/" + name)
		if _, err := file.read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestPermissions(t *testing.T) {
	for text, want := range map[string]fs.FileMode{"0644": 0o644, "600": 0o600, "4755": 0o755 | fs.ModeSetuid, "1777": 0o777 | fs.ModeSticky} {
		if got, err := permissions(text); err != nil || got != want || bits(got) != bits(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "rw", "888", "-1", "77777"} {
		if got, err := permissions(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestVariables(t *testing.T) {
	got, err := variables([]byte("# note\nA=1\nexport B=\"x y\"\n\nC='$HOME'\n"))
	if err != nil || len(got) != 3 || got["B"] != "x y" || got["C"] != "$HOME" {
		t.Errorf("%v %v", got, err)
	}
	if _, err := variables([]byte("A=1\n\nnonsense\n")); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("error %v names no line", err)
	}
	if _, err := variables(bytes.Repeat([]byte("A"), 1<<20)); err == nil {
		t.Error("a huge name passes")
	}
}
