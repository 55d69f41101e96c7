package logs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRotator(t testing.TB, dir string, maxFiles int, maxBytes int64) *Rotator {
	t.Helper()
	r, err := NewRotator(FIFOPath(dir, "web", Stdout), maxFiles, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// files gives the content of the log files by number.
func files(t testing.TB, dir string) map[int]string {
	t.Helper()
	out := map[int]string{}
	names, err := filepath.Glob(filepath.Join(dir, "web.stdout.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, ok := fileIndex(filepath.Base(name), "web.stdout")
		if !ok {
			t.Fatalf("file %s", name)
		}
		out[n] = string(data)
	}
	return out
}

func TestRotationIsExact(t *testing.T) {
	dir := t.TempDir()
	r := newRotator(t, dir, 3, 4)
	if got := files(t, dir); fmt.Sprint(got) != "map[0:]" {
		t.Errorf("at first: %v", got)
	}
	for _, tt := range []struct{ write, want string }{
		{"abc", "map[0:abc]"},
		{"d", "map[0:abcd]"},
		{"efghij", "map[0:abcd 1:efgh 2:ij]"},
		{"klmn", "map[1:efgh 2:ijkl 3:mn]"},
		{"0123456789", "map[3:mn01 4:2345 5:6789]"},
	} {
		if n, err := r.Write([]byte(tt.write)); n != len(tt.write) || err != nil {
			t.Fatal(n, err)
		}
		if got := fmt.Sprint(files(t, dir)); got != tt.want {
			t.Errorf("after %q: %v, want %v", tt.write, got, tt.want)
		}
	}
}

func TestRotatorGoesOnWhereTheLastStopped(t *testing.T) {
	dir := t.TempDir()
	r := newRotator(t, dir, 10, 4)
	r.Write([]byte("abcdef"))
	r.Close()
	r = newRotator(t, dir, 1, 4) // with fewer files than before
	r.Write([]byte("gh"))
	if got := fmt.Sprint(files(t, dir)); got != "map[1:efgh]" {
		t.Error(got)
	}
	r.Close()
	if _, err := r.Write([]byte("x")); err == nil {
		t.Error("a closed rotator writes")
	}
	r = newRotator(t, dir, 2, 4)
	r.Write([]byte("i"))
	if got := fmt.Sprint(files(t, dir)); got != "map[1:efgh 2:i]" {
		t.Error(got)
	}
}

func TestTruncatedFileGetsNoHole(t *testing.T) {
	dir := t.TempDir()
	r := newRotator(t, dir, 2, 100)
	r.Write([]byte("before"))
	if err := os.Truncate(filepath.Join(dir, "web.stdout.0"), 0); err != nil {
		t.Fatal(err)
	}
	r.Write([]byte("after"))
	if got := fmt.Sprint(files(t, dir)); got != "map[0:after]" {
		t.Error(got)
	}
}

func TestPlantedFilesAreNotWrittenTo(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "web.stdout.0")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, filepath.Join(dir, "web.stdout.1")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "web.stdout.2"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRotator(t, dir, 10, 100)
	if _, err := r.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(outside); string(got) != "mine" {
		t.Errorf("file outside now holds %q", got)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "web.stdout.3")); string(got) != "text" {
		t.Errorf("got %q", got)
	}
	if err := os.Symlink(outside, FIFOPath(dir, "web", Stdout)); err != nil {
		t.Fatal(err)
	}
	if err := MakeFIFO(FIFOPath(dir, "web", Stdout), 0, 0); err == nil {
		t.Error("a link passes for a FIFO")
	}
	// A link in place of the directory itself leads nowhere either.
	elsewhere, link := t.TempDir(), filepath.Join(t.TempDir(), "logs")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := MakeFIFO(FIFOPath(link, "web", Stdout), 0, 0); err == nil {
		t.Error("a FIFO is made behind a link")
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("made elsewhere: %v, %v", entries, err)
	}
}

func TestNames(t *testing.T) {
	if dir, base, ok := splitFIFO(FIFOPath("/a/logs", "we.b-1", Stderr)); dir != "/a/logs" || base != "we.b-1.stderr" || !ok {
		t.Error(dir, base, ok)
	}
	for name, want := range map[string]int{"web.stdout.0": 0, "web.stdout.12": 12, "web.stdout.01": -1, "web.stdout.": -1,
		"web.stdout.-1": -1, "web.stdout.x": -1, "xweb.stdout.1": -1, "web.stdout.1.gz": -1, "web.stdout.+1": -1} {
		n, ok := fileIndex(name, "web.stdout")
		if ok != (want >= 0) || (ok && n != want) {
			t.Errorf("%s: %d %v", name, n, ok)
		}
	}
}

// TestDrain: whatever is written to the FIFO in whatever pieces is in the files, in order and once, also across
// rotators that come and go.
func TestDrain(t *testing.T) {
	for _, copies := range []bool{false, true} {
		t.Run(fmt.Sprintf("without splice %v", copies), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				dir, err := os.MkdirTemp(t.TempDir(), "")
				if err != nil {
					rt.Fatal(err)
				}
				defer os.RemoveAll(dir)
				path := FIFOPath(dir, "web", Stdout)
				if err := MakeFIFO(path, os.Getuid(), os.Getgid()); err != nil {
					rt.Fatal(err)
				}
				task, err := OpenFIFO(path, true)
				if err != nil {
					rt.Fatal(err)
				}
				defer unix.Close(task)
				maxBytes := int64(rapid.IntRange(300, 5000).Draw(rt, "max bytes"))
				var want bytes.Buffer
				for range rapid.IntRange(1, 3).Draw(rt, "rotators") {
					r, err := NewRotator(path, 1<<20, maxBytes)
					if err != nil {
						rt.Fatal(err)
					}
					r.noSplice = copies
					fifo, err := OpenFIFO(path, false)
					if err != nil {
						rt.Fatal(err)
					}
					for _, size := range rapid.SliceOfN(rapid.IntRange(1, 5000), 0, 4).Draw(rt, "writes") {
						piece := make([]byte, size)
						for i := range piece {
							piece[i] = byte('a' + (want.Len()+i)%26)
						}
						want.Write(piece)
						unix.Write(task, piece)
						if rapid.Bool().Draw(rt, "drain") {
							for {
								_, empty, err := r.Drain(fifo, 1000, make([]byte, 512))
								if err != nil {
									rt.Fatal(err)
								}
								if empty {
									break
								}
							}
						}
					}
					for empty := false; !empty; {
						if _, empty, err = r.Drain(fifo, 1<<20, make([]byte, 512)); err != nil {
							rt.Fatal(err)
						}
					}
					unix.Close(fifo)
					r.Close()
				}
				got := files(t, dir)
				var all strings.Builder
				for n := range len(got) {
					if n < len(got)-1 && int64(len(got[n])) != maxBytes {
						rt.Fatalf("file %d has %d bytes of %d", n, len(got[n]), maxBytes)
					}
					all.WriteString(got[n])
				}
				if all.String() != want.String() {
					rt.Fatalf("got %d bytes, want %d", all.Len(), want.Len())
				}
			})
		})
	}
}

// BenchmarkDrain moves output through a FIFO into rotated files, by splice and by copying.
func BenchmarkDrain(b *testing.B) {
	for _, copies := range []bool{false, true} {
		b.Run(fmt.Sprintf("splice=%v", !copies), func(b *testing.B) {
			dir := b.TempDir()
			path := FIFOPath(dir, "web", Stdout)
			if err := MakeFIFO(path, os.Getuid(), os.Getgid()); err != nil {
				b.Fatal(err)
			}
			task, err := OpenFIFO(path, true)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(task)
			fifo, err := OpenFIFO(path, false)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(fifo)
			r := newRotator(b, dir, 2, DefaultMaxBytes)
			r.noSplice = copies
			piece, buf := bytes.Repeat([]byte("0123456789abcde\n"), 4096), make([]byte, 64<<10)
			b.SetBytes(int64(len(piece)))
			for b.Loop() {
				unix.Write(task, piece)
				for empty := false; !empty; {
					if _, empty, err = r.Drain(fifo, 1<<20, buf); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
