package command

import (
	"bytes"
	"flag"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
)

func testStreams() (streams, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return streams{in: strings.NewReader(""), out: &out, err: &errs, getenv: func(string) string { return "" }}, &out, &errs
}

// missing are public flags which a command does not have yet, with the reason.
var missing = map[string]string{
	"agent -acl-replication-token": "access control", "agent -client-intro-token": "node introduction",
	"agent -dev-connect": "service mesh", "agent -dev-consul": "Consul", "agent -dev-vault": "Vault",
	"agent -eventlog": "Windows only", "agent -eventlog-level": "Windows only",
	"node config -update-servers": "servers of a client that change while it runs",
	"job init -template":          "variables", "job init -list-templates": "variables",
}

// skipped are flags by pattern: Consul's and Vault's options of the agent come with their support.
var skipped = regexp.MustCompile(`^agent -(consul|vault)-`)

func TestCommandsHaveThePublicFlags(t *testing.T) {
	raw, err := os.ReadFile("testdata/commands.tsv")
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ := testStreams()
	all := commands(s, "nomadlite")
	checked := 0
	for _, line := range strings.Split(string(raw), "\n")[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) < 4 {
			continue
		}
		factory, ok := all[fields[0]]
		if !ok {
			continue
		}
		made, err := factory()
		if err != nil {
			t.Fatal(err)
		}
		r, ok := made.(*runner)
		if !ok {
			continue
		}
		checked++
		fs, _, _ := r.flags()
		for _, f := range strings.Fields(fields[1]) {
			name, kind, _ := strings.Cut(strings.TrimPrefix(f, "-"), ":")
			key := r.spec.name + " -" + name
			have := fs.Lookup(name)
			switch {
			case have == nil && missing[key] == "" && !skipped.MatchString(key):
				t.Errorf("%s has no flag -%s", fields[0], name)
			case have != nil && missing[key] != "":
				t.Errorf("%s has the flag -%s, which is listed as missing", fields[0], name)
			case have != nil && (kind == "bool") != isBool(have):
				t.Errorf("%s -%s: want a flag of type %s", fields[0], name, kind)
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d commands were checked", checked)
	}
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func TestEveryCommandHasAPage(t *testing.T) {
	s, _, _ := testStreams()
	for name, factory := range commands(s, "nomadlite") {
		c, err := factory()
		if err != nil {
			t.Fatal(err)
		}
		if c.Synopsis() == "" || !strings.Contains(c.Help(), "Usage: nomadlite ") {
			t.Errorf("%s: synopsis %q, help %q", name, c.Synopsis(), c.Help())
		}
	}
}

func TestWrongCallsEndWithOneAndAWord(t *testing.T) {
	for _, args := range [][]string{{"job", "run"}, {"job", "run", "a", "b"}, {"alloc", "logs", "-n"},
		{"job", "stop", "-kill-timeout=soon", "x"}, {"job", "stop", "-immediate", "-kill-timeout=soon", "x"}, {"alloc", "stop", "-kill-timeout=", "x"},
		{"job", "status", "-nope"}, {"version", "x"}, {"node", "eligibility", "x"}, {"job", "run", "/no/such/file"}} {
		s, out, errs := testStreams()
		if code := run("nomadlite", args, s); code != 1 || errs.Len() == 0 {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"jbo stop x", `There is no command "jbo"`, 127},
		{"job frob x", `There is no command "job frob"`, 1},
		{"job -help", "", 0},
		{"node status -address=" + nobody, "No agent answers at " + nobody + ". Start one", 1},
		{"job stop -address=" + nobody + " x", "No agent answers at " + nobody + ". Start one", 1},
		{"node status -address=127.0.0.1:4646", "expected http://HOST:PORT", 1},
	} {
		s, out, errs := testStreams()
		if code := run("nomadlite", strings.Fields(c.args), s); code != c.code || !strings.Contains(errs.String(), c.says) || c.says == "" && errs.Len() > 0 {
			t.Errorf("%s: exit %d\n%s%s", c.args, code, out, errs)
		}
	}
}

func TestVersionInBothForms(t *testing.T) {
	s, out, _ := testStreams()
	if code := run("/usr/bin/nomad", []string{"-version"}, s); code != 0 || !strings.HasPrefix(out.String(), "Nomad v2.") {
		t.Errorf("exit %d: %s", code, out)
	}
	out.Reset()
	if code := run("nomadlite", []string{"version"}, s); code != 0 || !strings.HasPrefix(out.String(), "nomadlite v") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestFlagsMayFollowArguments(t *testing.T) {
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	f := fs.Bool("f", false, "")
	n := fs.Int("n", 0, "")
	rest, err := parseFlags(fs, []string{"a", "-f", "b", "-n", "3", "--", "-c"}, true)
	if err != nil || !*f || *n != 3 || strings.Join(rest, " ") != "a b -c" {
		t.Errorf("rest %q, f %v, n %d, %v", rest, *f, *n, err)
	}
}

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 1, "c"}, {"a\n", 5, "a\n"}, {"", 3, ""}, {"a\nb\n", 0, ""}} {
		var out bytes.Buffer
		if err := copyLastLines(&out, strings.NewReader(c.text), c.n); err != nil || out.String() != c.want {
			t.Errorf("last %d of %q: %q, %v", c.n, c.text, out.String(), err)
		}
	}
}
