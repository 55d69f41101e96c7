package supervisor

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// DefaultIdleTimeout is how long a supervisor without tasks stays after the agent is gone.
const DefaultIdleTimeout = 30 * time.Second

// Options is how the agent starts a supervisor.
type Options struct {
	Dir       string // holds sockets and records of all supervisors of a node
	Idle      time.Duration
	NoCgroups bool
	Mountinfo string // "" is that of the process
	ReadyFD   int    // told when the socket answers; 0 for nobody
	LogLevel  string
}

func (o Options) args() []string {
	return []string{"-dir", o.Dir, "-idle", o.Idle.String(), fmt.Sprintf("-no-cgroups=%t", o.NoCgroups),
		"-mountinfo", o.Mountinfo,
		"-ready-fd", fmt.Sprint(o.ReadyFD), "-log-level", o.LogLevel}
}

// Main is the supervisor process: the binary calls it with what follows "supervisor" on its command line, before
// doing anything else, and exits with what it returns.
func Main(args []string) int {
	var o Options
	flags := flag.NewFlagSet("supervisor", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar(&o.Dir, "dir", "", "directory of sockets and records")
	flags.DurationVar(&o.Idle, "idle", DefaultIdleTimeout, "time to stay without agent and tasks")
	flags.BoolVar(&o.NoCgroups, "no-cgroups", false, "follow processes without cgroups")
	flags.StringVar(&o.Mountinfo, "mountinfo", "", "file that tells of the hierarchies of cgroups")
	flags.IntVar(&o.ReadyFD, "ready-fd", 0, "file descriptor to report on")
	var guarding bool
	flags.BoolVar(&guarding, "guard", false, "be a supervisor's guard of leased tasks")
	flags.StringVar(&o.LogLevel, "log-level", "info", "level of the log on standard error")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if guarding {
		return guardMain(hclog.New(&hclog.LoggerOptions{Name: "guard", Output: os.Stderr}))
	}
	if o.Dir == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "supervisor: it is started by the agent and is not meant to be run by hand")
		return 2
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "supervisor", Level: hclog.LevelFromString(o.LogLevel), Output: os.Stderr})
	if err := run(o, logger); err != nil {
		logger.Error("supervisor failed", "error", err)
		return 1
	}
	return 0
}

func run(o Options, logger hclog.Logger) error {
	// A few hundred tasks need little live memory; without this the heap would be let grow to many times that.
	debug.SetGCPercent(50)
	var ready io.WriteCloser
	if o.ReadyFD > 0 {
		unix.CloseOnExec(o.ReadyFD)
		ready = os.NewFile(uintptr(o.ReadyFD), "ready")
		defer ready.Close()
	}
	// What process tables show, where a start by /proc/self/exe would be called "exe".
	name := [16]byte{}
	copy(name[:15], "nomadlite-sup")
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0)
	// The whole tree of a task comes to us when the parents in it die.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// What ends an agent is no reason to end tasks. The signals are caught and not ignored, since children would
	// inherit that; caught signals are at their default again in a child, even if we got them ignored from a shell.
	quiet := make(chan os.Signal, 16)
	signal.Notify(quiet, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	child := make(chan os.Signal, 1)
	signal.Notify(child, unix.SIGCHLD)

	s, err := newServer(o, logger)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		s.close()
		return err
	}
	if ready != nil {
		fmt.Fprintln(ready, s.name)
		ready.Close()
	}
	logger.Info("supervisor runs", "name", s.name, "cgroups", s.cgroups.mounts())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.accept(ctx)
	for {
		select {
		case <-child:
			s.reap()
		case <-term:
			s.quitIfIdle("terminated")
		case <-quiet:
		case why := <-s.quit:
			logger.Info("supervisor ends", "why", why)
			s.close()
			return s.fault
		}
	}
}
