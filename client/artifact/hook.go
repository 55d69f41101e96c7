package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// atOnce is how many artifacts of one task are fetched at a time.
const atOnce = 3

// Config is what hooks share.
type Config struct {
	Settings Settings
	Logger   hclog.Logger
	Process  Process
}

// Hook fetches the artifacts of one task.
type Hook struct {
	Config *Config
	Dir    *allocdir.Dir
	Env    func(*hook.TaskRequest) *taskenv.Env
	// Owner finds the user to whom chown gives files.
	Owner func(name string) (allocdir.Owner, error)
}

var _ hook.TaskPrestarter = (*Hook)(nil)

// Name is the hook's name.
func (*Hook) Name() string { return "artifacts" }

// doneKey is where the numbers of the artifacts that lie in their places are kept.
const doneKey = "fetched"

// Prestart fetches what is not there yet. A failure is one of the start, about which the restart policy decides; only a
// block that can never be right fails the task at once.
func (h *Hook) Prestart(ctx context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	if len(r.Task.Artifacts) == 0 {
		return nil
	}
	items, err := h.items(r)
	if err != nil {
		err = fmt.Errorf("%w: %w", driver.ErrUnrecoverable, err)
		resp.Events = append(resp.Events, taskrunner.EventDownloadFailed(err))
		return err
	}
	done := fetchedOf(r.Data)
	if len(done) < len(items) {
		r.Control.Emit(taskrunner.EventDownloading())
	}
	missing := slices.DeleteFunc(items, func(it *item) bool { return done[it.number] })
	err = h.fetchAll(ctx, missing, done)
	resp.Data = map[string]string{doneKey: strings.Join(done.list(), ",")}
	if err != nil {
		if ctx.Err() == nil {
			resp.Events = append(resp.Events, taskrunner.EventDownloadFailed(err))
		}
		return err
	}
	resp.Once = true
	return nil
}

// fetched holds the numbers of artifacts.
type fetched map[int]bool

func fetchedOf(data map[string]string) fetched {
	f := fetched{}
	for text := range strings.SplitSeq(data[doneKey], ",") {
		if n, err := strconv.Atoi(text); err == nil {
			f[n] = true
		}
	}
	return f
}

func (f fetched) list() []string {
	var out []string
	for n := range f {
		out = append(out, strconv.Itoa(n))
	}
	slices.Sort(out)
	return out
}

// fetchAll fetches some artifacts at a time and notes those that are there. The first failure ends the others.
func (h *Hook) fetchAll(ctx context.Context, items []*item, done fetched) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // of done and first, and of moving things to their places
	var first error
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, it := range items {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			err := h.fetch(ctx, it, &mu)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done[it.number] = true
			} else if first == nil {
				first = err
				cancel()
			}
		})
	}
	running.Wait()
	return first
}

// fetch brings one artifact to its place, or leaves nothing.
func (h *Hook) fetch(ctx context.Context, it *item, moving *sync.Mutex) (err error) {
	fail := func(err error) error { return fmt.Errorf("%s: %w", it.label, it.censor(err)) }
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	at, err := openPlace(h.Dir.Path, it.dir, it.stage)
	if err != nil {
		return fail(err)
	}
	defer at.Close()
	stage, err := at.prepare()
	if err != nil {
		return fail(err)
	}
	defer func() {
		if cleaned := at.clean(); err == nil && cleaned != nil {
			err = fail(cleaned)
		}
	}()
	resp, err := h.Config.Process.fetch(ctx, it.request, stage)
	if closed := stage.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fail(err)
	}
	if resp.Exposed {
		h.Config.Logger.Warn("artifacts are fetched without isolation of the file system: this kernel has no Landlock", "artifact", it.label)
	}
	switch {
	case resp.Error != "" && resp.Final:
		return fail(fmt.Errorf("%w: %w", driver.ErrUnrecoverable, errors.New(resp.Error)))
	case resp.Error != "":
		return fail(errors.New(resp.Error))
	}
	tree, err := at.fetched()
	if err != nil {
		return fail(err)
	}
	defer tree.Close()
	if err := it.look.inspect(tree); err != nil {
		return fail(err)
	}
	moving.Lock()
	defer moving.Unlock()
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	if err := at.take(); err != nil {
		return fail(err)
	}
	return nil
}

// item is one block, read.
type item struct {
	number  int
	label   string
	request *Request
	dir     string // relative to the allocation's directory
	stage   string
	look    look
	hidden  []string
}

// censored is an error whose text shows no secrets.
type censored struct {
	error
	text string
}

func (e *censored) Error() string { return e.text }

func (e *censored) Unwrap() error { return e.error }

// censor takes secrets of the block out of an error's text.
func (it *item) censor(err error) error {
	text := err.Error()
	for _, secret := range it.hidden {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return &censored{error: err, text: text}
}

// items reads the blocks of a task, all faults at once.
func (h *Hook) items(r *hook.TaskRequest) ([]*item, error) {
	env := h.Env(r)
	places := dirs{alloc: h.Dir.Path, task: h.Dir.TaskDir(r.Task.Name), seen: map[string]string{}}
	for name, host := range map[string]string{"NOMAD_ALLOC_DIR": h.Dir.SharedDir(), "NOMAD_TASK_DIR": h.Dir.LocalDir(r.Task.Name),
		"NOMAD_SECRETS_DIR": h.Dir.SecretsDir(r.Task.Name)} {
		if dir, _ := env.Lookup(name); dir != "" {
			places.seen[dir] = host
		}
	}
	var errs structs.Errors
	var out []*item
	for i, a := range r.Task.Artifacts {
		it, err := h.item(i+1, a, env, places)
		if err == nil && a.Chown {
			var o allocdir.Owner
			o, err = h.Owner(env.Replace(r.Task.User))
			if err == nil {
				it.look.owner = &owner{uid: o.UID, gid: o.GID}
			}
		}
		if err != nil {
			errs.Add(fmt.Errorf("artifact %d: %w", i+1, err))
			continue
		}
		it.stage = ".artifact-" + r.Task.Name + "-" + strconv.Itoa(it.number)
		out = append(out, it)
	}
	return out, errs.Err()
}
