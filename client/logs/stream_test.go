package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/structs"
)

func newDir(t *testing.T) *allocdir.Dir {
	t.Helper()
	d := allocdir.New(t.TempDir(), "alloc-id")
	if err := d.Build(); err != nil {
		t.Fatal(err)
	}
	return d
}

// put appends to a log file; it may be called from any goroutine.
func put(t *testing.T, d *allocdir.Dir, name, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(d.LogDir(), name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Error(err)
	}
}

func context10(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// all reads a stream to its end: "file@offset:data" for each frame.
func all(t *testing.T, s *Stream) string {
	t.Helper()
	var out []string
	for {
		f, err := s.Next(context10(t))
		if errors.Is(err, io.EOF) {
			return strings.Join(out, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, show(f))
	}
}

func show(f *structs.StreamFrame) string {
	name := strings.TrimPrefix(f.File, "alloc/logs/web.stdout.")
	if f.FileEvent != "" {
		return fmt.Sprintf("%s@%d!%s", name, f.Offset, f.FileEvent)
	}
	return fmt.Sprintf("%s@%d:%s", name, f.Offset, f.Data)
}

func TestPositions(t *testing.T) {
	d := newDir(t)
	put(t, d, "web.stdout.3", "abcd")
	put(t, d, "web.stdout.4", "efgh")
	put(t, d, "web.stdout.5", "ij")
	put(t, d, "web.stderr.0", "err")
	for _, tt := range []struct {
		origin string
		offset int64
		want   string
	}{
		{"", 0, "3@0:abcd 4@0:efgh 5@0:ij"},
		{OriginStart, 3, "3@3:d 4@0:efgh 5@0:ij"},
		{OriginStart, 4, "4@0:efgh 5@0:ij"},
		{OriginStart, 9, "5@1:j"},
		{OriginStart, 10, ""},
		{OriginStart, 1000, ""},
		{OriginEnd, 0, ""},
		{OriginEnd, 1, "5@1:j"},
		{OriginEnd, 2, "5@0:ij"},
		{OriginEnd, 5, "4@1:fgh 5@0:ij"},
		{OriginEnd, 10, "3@0:abcd 4@0:efgh 5@0:ij"},
		{OriginEnd, 1000, "3@0:abcd 4@0:efgh 5@0:ij"},
	} {
		s, err := Open(d, "web", Stdout, tt.origin, tt.offset, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, s); got != tt.want {
			t.Errorf("%s %d: got %q, want %q", tt.origin, tt.offset, got, tt.want)
		}
		s.Close()
	}
}

func TestBadRequests(t *testing.T) {
	d := newDir(t)
	for _, tt := range []struct {
		kind, origin string
		offset       int64
		code         structs.Code
	}{
		{"stdwhat", "start", 0, structs.CodeInvalid},
		{Stdout, "middle", 0, structs.CodeInvalid},
		{Stdout, "start", -1, structs.CodeInvalid},
		{Stdout, "start", 0, structs.CodeNotFound},
	} {
		if _, err := Open(d, "web", tt.kind, tt.origin, tt.offset, false); structs.ErrorCode(err) != tt.code || err == nil {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	// No task has begun: there is no directory to watch yet.
	if _, err := Open(allocdir.New(t.TempDir(), "none"), "web", Stdout, "", 0, true); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Error(err)
	}
	if _, err := OpenFile(d, "../../etc/passwd", "", 0, false); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Error(err)
	}
}

func TestFollowAcrossRotation(t *testing.T) {
	d := newDir(t)
	s, err := Open(d, "web", Stdout, OriginStart, 0, true) // before there is any output
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context10(t)
	r, err := NewRotator(FIFOPath(d.LogDir(), "web", Stdout), 2, 1000)
	if err != nil {
		t.Fatal(err)
	}
	const lines = 10000
	read := make(chan int, lines) // what the reader has: the writer waits, since deleted files cannot be read
	go func() {
		defer s.Finish()
		defer r.Close()
		for i := range lines {
			fmt.Fprintf(r, "%09d\n", i)
			for behind := i; i%50 == 49 && behind >= 0; {
				select {
				case n := <-read:
					behind = i - n
				case <-ctx.Done():
					return
				}
				if behind < 50 {
					break
				}
			}
		}
	}()
	var got strings.Builder
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Write(f.Data)
		read <- got.Len() / 10
	}
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "%09d\n", i)
	}
	if got.String() != want.String() {
		t.Errorf("got %d bytes, want %d", got.Len(), want.Len())
	}
}

func TestWaitIsByEvent(t *testing.T) {
	d := newDir(t)
	put(t, d, "web.stdout.0", "a")
	s, err := Open(d, "web", Stdout, OriginStart, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context10(t)
	next := func(want string) {
		t.Helper()
		f, err := s.Next(ctx)
		if err != nil || show(f) != want {
			t.Fatalf("got %+v, %v; want %s", f, err, want)
		}
	}
	next("0@0:a")
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Next(short); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	short, cancel = context.WithTimeout(ctx, 20*time.Millisecond) // as an endpoint does for its heartbeats
	if _, err := s.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	cancel()
	for i, text := range []string{"b", "c"} {
		go put(t, d, "web.stdout.0", text)
		next(fmt.Sprintf("0@%d:%s", i+1, text))
	}
	go put(t, d, "web.stdout.1", "d")
	next("1@0:d")
	if err := os.Truncate(filepath.Join(d.LogDir(), "web.stdout.1"), 0); err != nil {
		t.Fatal(err)
	}
	next("1@0!" + EventTruncated)
	put(t, d, "web.stdout.1", "e")
	next("1@0:e")
	go s.Finish()
	if _, err := s.Next(ctx); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
}

func TestCloseWakesNext(t *testing.T) {
	d := newDir(t)
	s, err := Open(d, "web", Stdout, OriginStart, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Next(context.Background())
		done <- err
	}()
	s.Close()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestFileStream(t *testing.T) {
	d := newDir(t)
	path := filepath.Join(d.SharedDir(), "data", "x")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		origin string
		offset int64
		want   string
	}{{OriginStart, 1, "/alloc/data/x@1:ello"}, {OriginEnd, 2, "/alloc/data/x@3:lo"}, {OriginEnd, 99, "/alloc/data/x@0:hello"}, {OriginStart, 5, ""}, {OriginStart, math.MaxInt64, ""}} {
		s, err := OpenFile(d, "/alloc/data/x", tt.origin, tt.offset, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, s); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		s.Close()
	}
	s, err := OpenFile(d, "/alloc/data/x", OriginEnd, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		defer f.Close()
		f.WriteString(" world")
	}()
	ctx := context10(t)
	if f, err := s.Next(ctx); err != nil || show(f) != "/alloc/data/x@5: world" {
		t.Fatalf("got %+v, %v", f, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Next(ctx); err != nil || f.FileEvent != EventDeleted {
		t.Fatalf("got %+v, %v", f, err)
	}
	if _, err := s.Next(ctx); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestBigFramesAreCut(t *testing.T) {
	d := newDir(t)
	put(t, d, "web.stdout.0", strings.Repeat("x", MaxFrame+10))
	s, err := Open(d, "web", Stdout, "", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []int{MaxFrame, 10} {
		if f, err := s.Next(context10(t)); err != nil || len(f.Data) != want {
			t.Fatalf("got %d bytes, %v", len(f.Data), err)
		}
	}
}
