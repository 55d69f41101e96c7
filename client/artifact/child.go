package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Command is the word behind which the binary calls Main.
const Command = "fetch-artifact"

// File descriptors of the process beside the standard ones. Standard input is its parent's life: it ends with that.
const (
	requestFD = 3 // a file with the request
	stageFD   = 4 // the directory to fill
)

// What is below the directory that a process fills: outName is what it made, in tmpName it works.
const (
	outName = "out"
	tmpName = "tmp"
)

// apart is the argument of a process that is in namespaces of its own.
const apart = "apart"

// locked is the argument of a process that has confined itself.
const locked = "locked"

// exposed is the argument of one that could not, for want of Landlock.
const exposed = "exposed"

// maxMemory bounds the data of a process, in bytes, so that no packed file makes it grow for ever. What git needs depends
// on the repository: it is not bounded.
const maxMemory = 1 << 30

// Request is what a process is to fetch.
type Request struct {
	Source   Source
	Mode     string // any, file or dir
	Name     string // of the file, in mode file
	Headers  map[string]string
	Insecure bool // certificates are not checked
	Settings Settings
}

// Response is what a process says in the end.
type Response struct {
	Error string // "" when all went well
	// Final says that it makes no sense to try again.
	Final bool
	// Exposed says that the kernel could not confine the process.
	Exposed bool
}

// finalError is a fault of the block itself.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func final(format string, args ...any) error { return finalError{fmt.Errorf(format, args...)} }

// Main is the fetching process: the binary calls it with what follows Command on its command line. It returns the exit
// code: 0 whenever the response was written.
func Main(args []string) int {
	runtime.LockOSThread() // what lockDown does to this thread, the program executed by it inherits
	req, err := readRequest()
	if err != nil {
		fmt.Fprintln(os.Stderr, Command+": it is started by the agent and is not meant to be run by hand")
		return 2
	}
	signal.Ignore(unix.SIGXFSZ) // a file that grows too large is an error, not a crash
	if len(args) == 0 || args[0] == apart {
		if err := confine(req, len(args) > 0); err != nil {
			return answer(&Response{Error: "confine the fetching process: " + err.Error()})
		}
		return 1 // not reached: confine executes
	}
	runtime.UnlockOSThread()
	go dieWithParent()
	resp := &Response{Exposed: args[0] == exposed}
	if resp.Exposed && len(req.Settings.ExtraPaths) > 0 {
		req.Settings.ExtraPaths = nil // nothing keeps file sources to these paths
	}
	if err := fetch(context.Background(), req); err != nil {
		var f finalError
		resp.Error, resp.Final = err.Error(), errors.As(err, &f)
	}
	return answer(resp)
}

func answer(resp *Response) int {
	if err := json.NewEncoder(os.Stdout).Encode(resp); err != nil {
		fmt.Fprintln(os.Stderr, "send response:", err)
		return 1
	}
	return 0
}

func readRequest() (*Request, error) {
	f := os.NewFile(requestFD, "request")
	if f == nil {
		return nil, os.ErrInvalid
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	req := &Request{}
	return req, json.NewDecoder(f).Decode(req)
}

// confine makes the process what it is to be for whatever it does later, and executes the binary anew: limits and the
// lock of this one thread hold for all threads of the new program.
func confine(req *Request, namespace bool) error {
	unix.Umask(0o022)
	here, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", stageFD))
	if err != nil {
		return fmt.Errorf("find directory: %w", err)
	}
	if namespace && unix.Getpid() == 1 && !req.Settings.NoIsolation { // the first process of its own
		if err := writeOnlyHere(here, req.Settings.ExtraPaths); err != nil {
			return fmt.Errorf("make files read-only: %w", err)
		}
	}
	if err := enter(here); err != nil {
		return err
	}
	limits := map[int]uint64{unix.RLIMIT_CORE: 0}
	if req.Source.By != byGit {
		limits[unix.RLIMIT_DATA] = maxMemory
	}
	if s := req.Settings; s.HTTPMaxSize > 0 && s.UnpackedSize > 0 {
		limits[unix.RLIMIT_FSIZE] = uint64(max(s.HTTPMaxSize, s.UnpackedSize))
	}
	for what, limit := range limits {
		var now unix.Rlimit
		err := unix.Getrlimit(what, &now)
		limit = min(limit, now.Max)
		if err == nil {
			err = unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit})
		}
		if err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	how := locked
	if !req.Settings.NoIsolation {
		err := lockDown(req.rules())
		if errors.Is(err, errNoLandlock) {
			how, err = exposed, nil
		}
		if err != nil {
			return err
		}
	}
	// The directory's own descriptor is closed by the execution: beyond it lie the host's files as they were.
	if _, err := unix.FcntlInt(requestFD, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep request: %w", err)
	}
	if _, err := unix.FcntlInt(stageFD, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return fmt.Errorf("give up descriptor: %w", err)
	}
	env, err := environment()
	if err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", []string{"nomadlite", Command, how}, env)
}

// environment adds a home and a place for temporary files, both where the process may write.
func environment() ([]string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find directory: %w", err)
	}
	env := append(os.Environ(), "TMPDIR="+filepath.Join(dir, tmpName))
	if _, set := os.LookupEnv("HOME"); !set {
		env = append(env, "HOME="+filepath.Join(dir, tmpName))
	}
	return env, nil
}

// dieWithParent waits for the end of the agent, or its word to end, and takes all along that the process has started.
func dieWithParent() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended <- unix.SIGTERM
	}()
	<-ended
	_ = unix.Kill(0, unix.SIGKILL)
	os.Exit(1) // the first process of a namespace does not die of its own signal
}
