package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/cli"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/command/agent"
	"github.com/nomadlite/nomadlite/structs"
)

// spec is one command.
type spec struct {
	name     string // "job run"
	args     string // "<path>", as the usage line shows it
	synopsis string
	help     string // what it does, in sentences
	client   bool   // takes the flags of an API client
	// interspersed lets flags follow arguments; off where arguments belong to another program.
	positional bool
	minArgs    int
	maxArgs    int // -1: any number
	failure    int // exit code of a fault, 1 when it is not set
	// prepare declares flags and gives what runs with them.
	prepare func(fs *flag.FlagSet) func(ctx context.Context, c *call) error
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // out is a terminal
	getenv   func(string) string
	environ  []string
}

// call is one run of a command.
type call struct {
	streams
	args   []string
	client *api.Client
	ns     string
	color  bool // differences are written in colours
}

// exitError ends a command with a code other than 1, or without a message.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// printf writes to the command's output.
func (c *call) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// warnf writes to the command's error output.
func (c *call) warnf(format string, args ...any) { fmt.Fprintf(c.err, format, args...) }

// runner makes a spec a cli.Command.
type runner struct {
	spec    *spec
	streams streams
}

// clientFlags are the common flags of commands that talk to an agent.
type clientFlags struct {
	cfg     api.Config
	noColor bool
	force   bool
}

func (f *clientFlags) declare(fs *flag.FlagSet, getenv func(string) string) {
	f.cfg = api.ConfigFromEnv(getenv)
	fs.StringVar(&f.cfg.Address, "address", f.cfg.Address, "`ADDR`ess of the agent, NOMAD_ADDR or http://127.0.0.1:4646.")
	fs.StringVar(&f.cfg.Region, "region", f.cfg.Region, "`REGION` to ask, NOMAD_REGION.")
	fs.StringVar(&f.cfg.Namespace, "namespace", f.cfg.Namespace, "`NAMESPACE` of the object, NOMAD_NAMESPACE; * for all.")
	fs.StringVar(&f.cfg.Token, "token", f.cfg.Token, "ACL `TOKEN`, NOMAD_TOKEN.")
	fs.StringVar(&f.cfg.TLS.CACert, "ca-cert", f.cfg.TLS.CACert, "`PATH` of a PEM certificate authority, NOMAD_CACERT.")
	fs.StringVar(&f.cfg.TLS.CAPath, "ca-path", f.cfg.TLS.CAPath, "`PATH` of a folder of certificate authorities, NOMAD_CAPATH.")
	fs.StringVar(&f.cfg.TLS.ClientCert, "client-cert", f.cfg.TLS.ClientCert, "`PATH` of a client certificate, NOMAD_CLIENT_CERT.")
	fs.StringVar(&f.cfg.TLS.ClientKey, "client-key", f.cfg.TLS.ClientKey, "`PATH` of its key, NOMAD_CLIENT_KEY.")
	fs.StringVar(&f.cfg.TLS.ServerName, "tls-server-name", f.cfg.TLS.ServerName, "`NAME` to verify, NOMAD_TLS_SERVER_NAME.")
	fs.BoolVar(&f.cfg.TLS.Insecure, "tls-skip-verify", f.cfg.TLS.Insecure, "Do not verify the agent, NOMAD_SKIP_VERIFY.")
	fs.BoolVar(&f.cfg.TLS.Insecure, "insecure", f.cfg.TLS.Insecure, "Alias of -tls-skip-verify.")
	fs.BoolVar(&f.noColor, "no-color", false, "Write without colours, NOMAD_CLI_NO_COLOR.")
	fs.BoolVar(&f.force, "force-color", false, "Write with colours also where no terminal is, NOMAD_CLI_FORCE_COLOR.")
}

// Run parses flags and runs the command.
func (r *runner) Run(args []string) int {
	failure := max(r.spec.failure, 1)
	fs, common, run := r.flags()
	rest, err := parseFlags(fs, args, !r.spec.positional)
	if errors.Is(err, flag.ErrHelp) {
		return cli.RunResultHelp
	}
	if err == nil {
		err = r.checkArgs(rest)
	}
	if err != nil {
		fmt.Fprintf(r.streams.err, "%s\nFor flags and arguments run: nomadlite %s -help\n", err, r.spec.name)
		return failure
	}
	c := &call{streams: r.streams, args: rest}
	if common != nil {
		c.client, err = api.NewClient(common.cfg)
		if err != nil {
			fmt.Fprintln(r.streams.err, err)
			return failure
		}
		defer c.client.Close()
		c.ns = common.cfg.Namespace
		c.color = common.colored(r.streams)
	}
	ctx, stop := untilSignal()
	defer stop()
	err = run(ctx, c)
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.text != "" {
			fmt.Fprintln(r.streams.err, exit.text)
		}
		return exit.code
	case ctx.Err() != nil:
		return 130
	default:
		fmt.Fprintln(r.streams.err, sentence(err))
		if common != nil && unreached(err) {
			fmt.Fprintf(r.streams.err, "No agent answers at %s. Start one (nomadlite agent -dev is for trying things out), or name another by "+
				"-address or NOMAD_ADDR.\n", cmp.Or(common.cfg.Address, api.DefaultAddress))
		}
		return failure
	}
}

// unreached says whether err is that nothing accepts connections at the agent's address. Commands keep the text of errors and
// not always their chain.
func unreached(err error) bool {
	_, after, called := strings.Cut(err.Error(), "call agent: ")
	return called && strings.Contains(after, ": dial ")
}

// untilSignal gives a context that ends with SIGINT or SIGTERM; its cause says which.
func untilSignal() (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case s := <-signals:
			cancel(&agent.Signalled{Signal: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// sentence is an error as people read it.
func sentence(err error) string {
	text := strings.TrimRight(err.Error(), "\n")
	first, size := utf8.DecodeRuneInString(text)
	if word, _, _ := strings.Cut(text, " "); strings.ContainsAny(word, ":/.=-") {
		return text // begins with a place or a flag
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// colored says whether colours are wanted: flags and the environment decide, -no-color before -force-color, else
// whether there is a terminal.
func (f *clientFlags) colored(s streams) bool {
	switch {
	case f.noColor || s.getenv("NOMAD_CLI_NO_COLOR") != "":
		return false
	case f.force || s.getenv("NOMAD_CLI_FORCE_COLOR") != "":
		return true
	}
	return s.terminal
}

func (r *runner) flags() (*flag.FlagSet, *clientFlags, func(context.Context, *call) error) {
	fs := flag.NewFlagSet(r.spec.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	var common *clientFlags
	if r.spec.client {
		common = &clientFlags{}
		common.declare(fs, r.streams.getenv)
	}
	return fs, common, r.spec.prepare(fs)
}

// parseFlags parses flags, also after arguments when interspersed; "--" ends them.
func parseFlags(fs *flag.FlagSet, args []string, interspersed bool) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		left := fs.Args()
		ended := len(left) < len(args) && args[len(args)-len(left)-1] == "--"
		if len(left) == 0 || !interspersed || ended {
			return append(rest, left...), nil
		}
		rest = append(rest, left[0])
		args = left[1:]
	}
}

func (r *runner) checkArgs(args []string) error {
	s := r.spec
	if len(args) >= s.minArgs && (s.maxArgs < 0 || len(args) <= s.maxArgs) {
		return nil
	}
	switch {
	case s.maxArgs == 0:
		return fmt.Errorf("%s takes no arguments, got %q", s.name, args)
	case s.minArgs == s.maxArgs && s.minArgs == 1:
		return fmt.Errorf("%s takes one argument: %s", s.name, s.args)
	case len(args) < s.minArgs:
		return fmt.Errorf("%s takes at least %d argument(s): %s", s.name, s.minArgs, s.args)
	}
	return fmt.Errorf("%s takes at most %d argument(s): %s", s.name, s.maxArgs, s.args)
}

// Synopsis is the line in a list of commands.
func (r *runner) Synopsis() string { return r.spec.synopsis }

// Help is the command's page.
func (r *runner) Help() string {
	fs, common, _ := r.flags()
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: nomadlite %s [options] %s\n\n  %s\n", r.spec.name, r.spec.args,
		strings.ReplaceAll(strings.TrimSpace(r.spec.help), "\n", "\n  "))
	general := map[string]bool{}
	if common != nil {
		only := flag.NewFlagSet("", flag.ContinueOnError)
		(&clientFlags{}).declare(only, r.streams.getenv)
		only.VisitAll(func(f *flag.Flag) { general[f.Name] = true })
	}
	section := func(title string, want bool) {
		var names []string
		fs.VisitAll(func(f *flag.Flag) {
			if general[f.Name] == want {
				names = append(names, f.Name)
			}
		})
		if len(names) == 0 {
			return
		}
		sort.Strings(names)
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, n := range names {
			f := fs.Lookup(n)
			value, usage := flag.UnquoteUsage(f)
			if value != "" {
				value = "=<" + strings.ToLower(value) + ">"
			}
			fmt.Fprintf(&b, "\n  -%s%s\n    %s\n", n, value, usage)
		}
	}
	section("General Options", true)
	section("Options", false)
	return b.String()
}

// group is a command that only has others below it.
type group struct {
	name, synopsis string
	err            io.Writer
}

// Run shows the commands below it, and says so when one was meant that is not there.
func (g group) Run(args []string) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		fmt.Fprintf(g.err, "There is no command %q\n\n", g.name+" "+args[0])
	}
	return cli.RunResultHelp
}

// Synopsis is the line in a list of commands.
func (g group) Synopsis() string { return g.synopsis }

// Help is the group's page; the commands below are added to it.
func (g group) Help() string {
	return fmt.Sprintf("Usage: nomadlite %s <subcommand> [options] [args]\n\n  %s", g.name, g.synopsis)
}

// Main runs the command line and gives its exit code. args are without the program's name; program is what it was
// called by.
func Main(program string, args []string) int {
	s := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, terminal: isTerminal(os.Stdout), getenv: os.Getenv, environ: os.Environ()}
	return run(program, args, s)
}

func run(program string, args []string, s streams) int {
	if len(args) > 0 {
		switch args[0] {
		case "-v", "-version", "--version":
			printVersion(s.out, filepath.Base(program))
			return 0
		}
	}
	app := cli.NewCLI("nomadlite", structs.Version)
	app.Args = args
	app.Commands = commands(s, filepath.Base(program))
	app.HelpWriter = s.out
	app.ErrorWriter = s.err
	app.Autocomplete = false
	code, err := app.Run()
	if err != nil {
		fmt.Fprintln(s.err, err)
		return 1
	}
	if code == notFound && len(args) > 0 {
		fmt.Fprintf(s.err, "There is no command %q\n", args[0])
	}
	return code
}

// notFound is the exit code for a command that is not there, as shells have it.
const notFound = 127

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
