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

// cliCase is a command with its exit code and what it writes somewhere.
type cliCase struct {
	args []string
	code int
	says string // in what it writes; "" is nothing at all
}

func (a *agent) wants(stdin string, cases ...cliCase) {
	a.t.Helper()
	for _, c := range cases {
		out, errs, code := a.cli(stdin, c.args...)
		if text := out + errs; code != c.code || !strings.Contains(text, c.says) || c.says == "" && text != "" {
			a.t.Errorf("%s: exit %d, want %d and %q\n%s%s", strings.Join(c.args, " "), code, c.code, c.says, out, errs)
		}
	}
}

const versionsSpec = `
variable "count" {
  type    = number
  default = 1
}
job "versions" {
  type = "batch"
  group "g" {
    count = var.count
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
`

// Plans, versions, tags and reverts by the command line, with what is wrong about them.
func TestVersionsByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	spec := filepath.Join(a.Dir, "versions.nomad.hcl")
	if err := os.WriteFile(spec, []byte(versionsSpec), 0o600); err != nil {
		t.Fatal(err)
	}
	asJSON, _, _ := a.cli("", "job", "run", "-output", spec)
	a.wants(asJSON, cliCase{[]string{"plan", "-json", "-"}, 1, "(1 create)"}, cliCase{[]string{"job", "plan", "-json", spec}, 255, "no JSON object"})
	a.wants(versionsSpec,
		cliCase{[]string{"job", "plan", "-verbose", "-"}, 1, `+ Driver: `},
		cliCase{[]string{"job", "plan", "-json-output", "-"}, 1, `"DesiredTGUpdates"`},
		cliCase{[]string{"job", "plan", "-t", "{{.JobModifyIndex}}", "-"}, 1, "0\n"},
		cliCase{[]string{"job", "plan", "-var", "nope=1", "-"}, 255, "Undeclared variable"},
		cliCase{[]string{"job", "plan", "-namespace", "nope", "-"}, 255, "nonexistent namespace"},
		cliCase{[]string{"job", "history", "versions"}, 1, `No job with id or prefix "versions" found`},
		cliCase{[]string{"job", "run", "-"}, 0, "finished with status"},
		cliCase{[]string{"job", "run", "-var", "count=2", "-"}, 0, "finished with status"},
		cliCase{[]string{"job", "run", "-var", "count=3", "-"}, 0, "finished with status"},
	)
	a.wants("",
		cliCase{[]string{"job", "history", "-p", "vers"}, 0, `+/- Count: "2" => "3"`},
		cliCase{[]string{"job", "history", "-diff-version", "0", "-version", "2", "versions"}, 0, `+/- Count: "1" => "3"`},
		cliCase{[]string{"job", "history", "-version", "9", "versions"}, 1, "has no version 9"},
		cliCase{[]string{"job", "history", "-diff-version", "9", "versions"}, 1, "version 9 not found"},
		cliCase{[]string{"job", "history", "-diff-tag", "nope", "versions"}, 1, `tag "nope" not found`},
		cliCase{[]string{"job", "history", "-diff-tag", "x", "-diff-version", "1", "versions"}, 1, "cannot be used together"},
		cliCase{[]string{"job", "history", "-json", "-version", "1", "versions"}, 0, `"Version": 1`},
		cliCase{[]string{"job", "tag", "apply", "versions"}, 1, "-name is required"},
		cliCase{[]string{"job", "tag", "apply", "-name", "first", "-version", "0", "versions"}, 0, "Job version 0 tagged with name \"first\"\n"},
		cliCase{[]string{"job", "tag", "apply", "-name", "first", "-version", "1", "versions"}, 1, "already exists on a different version"},
		cliCase{[]string{"job", "tag", "apply", "-name", "last", "versions"}, 0, "Job version 2 tagged"},
		cliCase{[]string{"job", "history", "-diff-tag", "first", "versions"}, 0, `+/- Count: "1" => "2"`},
		cliCase{[]string{"job", "tag", "unset", "-name", "nope", "versions"}, 1, `tag "nope" not found`},
		cliCase{[]string{"job", "revert", "versions", "nope"}, 1, `no version with the tag "nope"`},
		cliCase{[]string{"job", "revert", "versions", "last"}, 1, "can't revert to current version"},
		cliCase{[]string{"job", "revert", "versions", "17"}, 1, "version 17 not found"},
		cliCase{[]string{"job", "revert", "-detach", "versions", "first"}, 0, "Evaluation ID: "},
		cliCase{[]string{"job", "revert", "versions", "1"}, 0, "Monitoring evaluation"},
		cliCase{[]string{"job", "inspect", "-hcl", "-with-vars", "versions"}, 0, "# Variables\ncount = \"2\"\n"},
		cliCase{[]string{"job", "inspect", "-hcl", "-version", "3", "versions"}, 0, strings.TrimSpace(versionsSpec)},
		cliCase{[]string{"job", "inspect", "-hcl", "-json", "versions"}, 1, "cannot be used together"},
		cliCase{[]string{"job", "inspect", "-with-vars", "versions"}, 1, "only be used with -hcl"},
	)
}
