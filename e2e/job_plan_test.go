package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/e2e/proc"
)

// shell runs the commands of a page as a reader types them.
type shell struct {
	t    *testing.T
	dir  string
	env  []string
	code int // exit code of the last command
}

func newShell(t *testing.T, a *agent) *shell {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(proc.Binary(t), filepath.Join(bin, "nomadlite")); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, dir: t.TempDir(), env: append(os.Environ(), "NOMAD_ADDR="+a.Addr(), "PATH="+bin+":"+os.Getenv("PATH"))}
}

// run gives what a command writes.
func (s *shell) run(command string) string {
	s.t.Helper()
	cmd := exec.CommandContext(limited(s.t), "/bin/sh", "-c", "(exit "+strconv.Itoa(s.code)+"); "+command)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		s.t.Fatalf("run %s: %v", command, err)
	}
	s.code = cmd.ProcessState.ExitCode()
	return string(out)
}

// What differs from run to run.
var (
	anyIndex = regexp.MustCompile(`(Job Modify Index: |-check-index )\d+`)
	anyDate  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)
)

func settled(text string) string {
	text = anyIndex.ReplaceAllString(text, "${1}N")
	return strings.TrimSpace(anyDate.ReplaceAllString(text, "DATE"))
}

// walk runs every command of a page and wants what the page shows. With NOMADLITE_UPDATE_DOCS the page is written anew.
func (s *shell) walk(page string) {
	s.t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	blocks := strings.Split(string(text), "```")
	for i, block := range blocks {
		if i%2 == 0 {
			out = append(out, block)
			continue
		}
		kind, body, _ := strings.Cut(block, "\n")
		switch kind {
		case "hcl":
			name, _, _ := strings.Cut(strings.TrimPrefix(body, "# "), "\n")
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(body), 0o600); err != nil {
				s.t.Fatal(err)
			}
		case "console":
			block = "console\n" + s.console(body)
		}
		out = append(out, block)
	}
	if os.Getenv("NOMADLITE_UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, []byte(strings.Join(out, "```")), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

// console runs one block and gives it with what was written now.
func (s *shell) console(body string) string {
	s.t.Helper()
	var out strings.Builder
	for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		got := s.run(command)
		if settled(got) != settled(want) && os.Getenv("NOMADLITE_UPDATE_DOCS") == "" {
			s.t.Errorf("%s\nwrote\n%s\nbut the page shows\n%s", command, got, want)
		}
		out.WriteString("$ " + command + "\n" + got)
	}
	return out.String()
}

// The page about plans, versions and reverts is true.
func TestThePageAboutPlansIsTrue(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	newShell(t, a).walk("../docs/job-plan.md")
}
