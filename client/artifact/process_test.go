package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

func serveUnauthorised(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// await fails the test when c is not ready soon.
func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not come", what)
	}
}

// ways are how a fetch may run when it has to end.
var ways = []struct {
	forced string
	shared bool
}{{"", false}, {"git::", false}, {"", true}, {"git::", true}}

// TestAStopEndsTheFetch kills what fetches, git's helpers too, and leaves nothing.
func TestAStopEndsTheFetch(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		srv, asked, gone := slow(t)
		s := newStand(t)
		source := way.forced
		s.Config.Process.shared = way.shared
		s.add(source+srv.URL+"/x", nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if resp, err := s.fetch(ctx); !errors.Is(err, context.Canceled) || len(resp.Events) > 0 {
				t.Errorf("%+v %v", resp, err)
			}
		}()
		await(t, "question", asked)
		begun := time.Now()
		stop()
		await(t, "end of the fetch", ended)
		await(t, "end of the connection", gone)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if left := s.tree(); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		if entries, err := os.ReadDir(s.Dir.LocalDir("web")); err != nil || len(entries) > 0 {
			t.Errorf("left %v, %v", entries, err)
		}
	}
}

// TestTheEndOfTheAgentEndsTheFetch kills an agent while it fetches; the next one removes what is half there.
func TestTheEndOfTheAgentEndsTheFetch(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		srv, asked, gone := slow(t)
		source := way.forced + srv.URL + "/x"
		s := newStand(t)
		agent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAgent$")
		agent.Env = append(os.Environ(), "ARTIFACT_SOURCE="+source, "ARTIFACT_DIR="+s.Dir.Path, fmt.Sprintf("ARTIFACT_SHARED=%t", way.shared))
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "question", asked)
		_ = agent.Process.Kill()
		_ = agent.Wait()
		await(t, "end of the connection", gone)
		entries, err := os.ReadDir(s.Dir.LocalDir("web"))
		if err != nil || len(entries) != 1 || entries[0].Name() != ".artifact-web-1" {
			t.Errorf("there is %v, %v", entries, err)
		}
		srv2 := serve(t, map[string]string{"/x": "whole"})
		s.add(srv2.URL+"/x", nil)
		if got := s.good(); !maps.Equal(got, map[string]string{"local/x": "whole"}) {
			t.Errorf("%v", got)
		}
	}
}

// TestAgent is the agent of the test above, not a test.
func TestAgent(t *testing.T) {
	source := os.Getenv("ARTIFACT_SOURCE")
	if source == "" {
		return
	}
	s := newStand(t)
	s.Dir.Path = os.Getenv("ARTIFACT_DIR")
	s.Config.Process.shared = os.Getenv("ARTIFACT_SHARED") == "true"
	s.add(source, nil)
	_, _ = s.fetch(t.Context())
}

// probes are what a process tries that is confined, as shell commands for the fake git below.
const probes = `
exec 2>/dev/null
say() { echo "$1" >> "$OUT"; }
cat /etc/shadow > "$OUT.x" && say shadow
cat "$SECRET" > "$OUT.x" && say secret
cat /proc/1/environ > "$OUT.x" && say environ
echo x > "$VICTIM" && say write
ln "$VICTIM" "$OUT.link" && say hardlink
rm -f "$VICTIM" && say remove
mkdir "$(dirname "$VICTIM")/made" && say mkdir
mknod "$OUT.dev" c 1 3 && say device
chmod 777 "$SECRET" && say chmod
chown 1:1 "$OUT.x" && say chown
[ -n "$AGENTS_OWN" ] && say "environment $AGENTS_OWN"
say "$GIVEN $HOME $TMPDIR"
exit 1
`

// TestAProcessIsConfined puts a program in git's place which tries what it must not be able to.
func TestAProcessIsConfined(t *testing.T) {
	if v, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1); int(v) < 1 {
		t.Skip("the kernel has no Landlock")
	}
	dir := t.TempDir()
	program, secret, victim, tools := filepath.Join(dir, "bin"), filepath.Join(dir, "secret"), filepath.Join(dir, "victim"), "/usr/sbin:/usr/bin:/sbin:/bin"
	if err := errors.Join(os.Mkdir(program, 0o755), os.WriteFile(filepath.Join(program, "git"), []byte("#!/bin/sh"+probes), 0o755),
		os.WriteFile(secret, []byte("s"), 0o600), os.WriteFile(victim, []byte("v"), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTS_OWN", "password")
	run := func(change func(*Settings)) []string {
		s := newStand(t)
		out := filepath.Join(dir, "said")
		_ = os.Remove(out)
		if err := os.WriteFile(out, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.Config.Settings.ExtraPaths = []Path{{Name: program, Dir: true, Read: true, Execute: true}, {Name: out, Read: true, Write: true}}
		change(&s.Config.Settings)
		s.Config.Process.Env = []string{"PATH=" + program + ":" + tools, "OUT=" + out, "SECRET=" + secret, "VICTIM=" + victim, "GIVEN=given"}
		s.add("git::https://a.test/r", nil)
		s.bad("git clone: exit status 1", false)
		said, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(said)), "\n")
	}
	said := run(func(*Settings) {})
	if os.Geteuid() != 0 && said[0] == "chmod" { // it needs a mount namespace, which only root can make
		said = said[1:]
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "given /") || strings.Count(said[0], "/.artifact-web-1/tmp") != 2 {
		t.Errorf("confined, it could %q", said)
	}
	if os.Geteuid() == 0 {
		if said := run(func(s *Settings) { s.NoIsolation = true }); len(said) < 8 {
			t.Errorf("free, it could only %q: the probes prove nothing", said)
		}
	}
}

func TestFilesOfTheHost(t *testing.T) {
	dir := t.TempDir()
	shown, hidden := filepath.Join(dir, "shown"), filepath.Join(dir, "hidden")
	if err := errors.Join(os.MkdirAll(filepath.Join(shown, "d"), 0o755), os.WriteFile(filepath.Join(shown, "d", "run"), []byte("abc"), 0o755),
		os.Symlink("run", filepath.Join(shown, "d", "l")), os.WriteFile(hidden, []byte("h"), 0o644), unix.Mkfifo(filepath.Join(shown, "fifo"), 0o644),
		os.WriteFile(filepath.Join(shown, "x.tar"), []byte(tarred(t, regular("in", "side"))), 0o644)); err != nil {
		t.Fatal(err)
	}
	s := newStand(t)
	s.add("file://"+shown+"/d/run", nil)
	s.bad("files of the node are not shown to artifacts", true)
	seen := func() *stand {
		s := newStand(t)
		s.Config.Settings.ExtraPaths = []Path{{Name: shown, Dir: true, Read: true}}
		return s
	}
	s = seen()
	s.add(shown+"/d/run", checksum("sha1:"+sha1Of))
	s.add("file::"+shown+"/d", mode("dir", "local/copy"))
	s.add(shown+"/x.tar", nil)
	if got := s.good(); !maps.Equal(got, map[string]string{"local/run": "abc", "local/copy/run": "abc", "local/copy/l": "-> run", "local/in": "side"}) {
		t.Errorf("%v", got)
	}
	if info, err := os.Stat(filepath.Join(s.Dir.LocalDir("web"), "run")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for source, want := range map[string]string{hidden: "permission denied", shown + "/fifo": "no regular file", shown + "/none": "no such file"} {
		s = seen()
		s.add(source, nil)
		s.bad(want, false)
	}
	s = newStand(t)
	s.Config.Settings.NoIsolation = true
	s.add(hidden, nil)
	if got := s.good(); got["local/hidden"] != "h" {
		t.Errorf("%v", got)
	}
}

// TestAnAnswerThatIsNone tells of a process that ends in no regular way.
func TestAnAnswerThatIsNone(t *testing.T) {
	srv := serve(t, map[string]string{"/x": "x"})
	for command, want := range map[string]string{"exit 3": "exit status 3: oops", "exit 0": "unexpected end of JSON"} {
		s := newStand(t)
		s.Config.Process.Command = []string{"/bin/sh", "-c", "echo oops >&2; " + command}
		s.add(srv.URL+"/x", nil)
		s.bad(want, false)
	}
	s := newStand(t)
	s.Config.Process.Command = []string{"/nonexistent"}
	s.add(srv.URL+"/x", nil)
	s.bad("start fetching process", false)
}

// TestTheAgentBelievesNothing looks itself at what a process made that was taken over.
func TestTheAgentBelievesNothing(t *testing.T) {
	srv := serve(t, map[string]string{"/x": "x"})
	for what, tt := range map[string]struct{ script, want string }{
		"link":    {"mkdir out; ln -s /etc out/l", "leads out of the artifact"},
		"out":     {"ln -s /etc out", "it is no directory"},
		"nothing": {"true", "look at what was fetched"},
		"fifo":    {"mkdir out; mkfifo out/f", "is a FIFO"},
		"size":    {"mkdir out; head -c 3000 /dev/zero > out/f", "above 2000"},
		"stage":   {"mkdir -p out/.artifact-web-1", "cannot be brought by an artifact"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStand(t)
			s.Config.Settings.HTTPMaxSize, s.Config.Settings.UnpackedSize = 1000, 2000
			s.Config.Process.Command = []string{"/bin/sh", "-c", "cd /proc/self/fd/4; " + tt.script + "; echo '{}'"}
			s.add(srv.URL+"/x", nil)
			s.bad(tt.want, false)
		})
	}
}

// TestRunByHand answers a person, not an agent.
func TestRunByHand(t *testing.T) {
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], Command)
	cmd.Stderr = &said
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(said.String(), "not meant to be run by hand") {
		t.Errorf("%v: %s", err, said.String())
	}
}

// TestManyAtATime fetches more artifacts than at a time, and one failure ends the others.
func TestManyAtATime(t *testing.T) {
	files := map[string]string{}
	for n := range 10 {
		files[fmt.Sprintf("/%d", n)] = fmt.Sprint(n)
	}
	srv := serve(t, files)
	s := newStand(t)
	for n := range 10 {
		s.add(fmt.Sprintf("%s/%d", srv.URL, n), nil)
	}
	if got := s.good(); len(got) != 10 || got["local/7"] != "7" {
		t.Errorf("%v", got)
	}
	hangs, _, gone := slow(t)
	s = newStand(t)
	s.add(hangs.URL+"/x", nil)
	s.add(srv.URL+"/none", func(a *structs.TaskArtifact) { a.RelativeDest = structs.Ptr("local/other") })
	if _, err := s.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "artifact 2 ("+srv.URL+"/none)") {
		t.Errorf("error %v", err)
	}
	select {
	case <-gone:
	default: // it was ended before it had asked
	}
}
