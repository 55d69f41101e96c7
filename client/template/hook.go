package template

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// DefaultDenylist are the functions that no template may use unless the agent's configuration says otherwise: they write
// or run what they like on the node, or recurse without bound.
func DefaultDenylist() []string { return []string{"executeTemplate", "plugin", "writeToFile"} }

// Source answers what templates look up of the cluster.
type Source interface {
	// Fetch answers q for a task of the namespace. With an index above 0 it waits for news beyond it; it may answer
	// without. The index that it gives is for the next call; 0 says that the answer is for good. An error coded invalid,
	// permission, not found or not implemented fails the template, after any other it is asked again.
	Fetch(ctx context.Context, namespace string, q Query, index uint64) (Answer, uint64, error)
}

// Script runs a command in a running task: a change_script.
type Script func(ctx context.Context, command string, args []string) (code int, output string, err error)

// Settings are what the agent's configuration says of templates.
type Settings struct {
	Denylist   []string // nil means DefaultDenylist
	Unconfined bool     // sources, destinations and files may lie anywhere on the host
	Wait       *structs.WaitConfig
	WaitBounds *structs.WaitConfig
}

// Config is what hooks share.
type Config struct {
	Settings
	Logger hclog.Logger
	// Life ends with the agent; Go runs a goroutine that the agent waits for.
	Life   context.Context
	Go     func(func())
	Source Source
	Render func(context.Context, *Request) (*Response, error)
	Random func() float64 // in [0,1)
	// Script gives what runs a change_script in a task, nil when its driver cannot.
	Script func(*hook.TaskRequest) Script
}

// Hook renders the templates of one task.
type Hook struct {
	Config *Config
	Dir    *allocdir.Dir
	Env    func(*hook.TaskRequest) *taskenv.Env

	mu      sync.Mutex // the points of a task may overlap with an update
	session *session
}

var (
	_ hook.TaskPrestarter  = (*Hook)(nil)
	_ hook.TaskPoststarter = (*Hook)(nil)
	_ hook.TaskReattacher  = (*Hook)(nil)
	_ hook.TaskExiter      = (*Hook)(nil)
	_ hook.TaskStopper     = (*Hook)(nil)
)

// Name is the hook's name.
func (*Hook) Name() string { return "template" }

// Prestart renders all templates, or, before a later start, takes what the session has rendered last.
func (h *Hook) Prestart(ctx context.Context, r *hook.TaskRequest, resp *hook.TaskResponse) error {
	if len(r.Task.Templates) == 0 {
		return nil
	}
	s := h.current()
	if s != nil && (rendersAnew(r) || s.failed() != nil) {
		h.drop()
		s = nil
	}
	if s == nil {
		var err error
		if s, err = h.open(r, down); err != nil {
			resp.Events = append(resp.Events, taskrunner.EventTemplate(err.Error()))
			return err
		}
	}
	select {
	case <-s.ready:
	case <-s.done:
	case <-ctx.Done():
		h.drop()
		return fmt.Errorf("wait for templates: %w", context.Cause(ctx))
	}
	if err := s.failed(); err != nil {
		h.drop()
		resp.Events = append(resp.Events, taskrunner.EventTemplate(err.Error()))
		return err
	}
	if !s.isReady() {
		return fmt.Errorf("render templates: %w", context.Canceled) // the agent ends
	}
	resp.Env = s.begin()
	return nil
}

// rendersAnew says that the task's restart block wants everything rendered again.
func rendersAnew(r *hook.TaskRequest) bool {
	p := r.Task.RestartPolicy
	if p == nil {
		if group := r.Alloc.Group(); group != nil {
			p = group.RestartPolicy
		}
	}
	return p != nil && structs.Val(p.RenderTemplates)
}

// Poststart lets changes since the start be told to the task.
func (h *Hook) Poststart(_ context.Context, r *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.run(r)
}

// Reattach goes on with a task of an earlier agent: what has changed meanwhile is told to it.
func (h *Hook) Reattach(_ context.Context, r *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.run(r)
}

func (h *Hook) run(r *hook.TaskRequest) error {
	if len(r.Task.Templates) == 0 {
		return nil
	}
	if s := h.current(); s != nil {
		s.become(up)
		return nil
	}
	_, err := h.open(r, up)
	return err
}

// Exited lets the next start see changes from now on.
func (h *Hook) Exited(context.Context, *hook.TaskRequest, *hook.TaskResponse) error {
	if s := h.current(); s != nil {
		s.become(down)
	}
	return nil
}

// Stop ends the session.
func (h *Hook) Stop(context.Context, *hook.TaskRequest, *hook.TaskResponse) error {
	h.drop()
	return nil
}

func (h *Hook) current() *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

func (h *Hook) drop() {
	h.mu.Lock()
	s := h.session
	h.session = nil
	h.mu.Unlock()
	if s != nil {
		s.end()
	}
}

func (s *session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// open checks the templates and begins a session.
func (h *Hook) open(r *hook.TaskRequest, l life) (*session, error) {
	env := h.Env(r)
	s := &session{cfg: h.Config, namespace: r.Alloc.Namespace, control: r.Control, life: l, env: env.Facts(), places: h.places(r, env)}
	if h.Config.Script != nil {
		s.script = h.Config.Script(r)
	}
	var errs structs.Errors
	for i, spec := range r.Task.Templates {
		if l == up && structs.Val(spec.Once) {
			continue // it was rendered before the task was started
		}
		it, err := s.item(i, spec, env)
		errs.Add(err)
		s.items = append(s.items, it)
	}
	if err := errs.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrUnrecoverable, err)
	}
	now := time.Now()
	for _, it := range s.items {
		it.quiet.atOnce(now)
	}
	s.start()
	h.mu.Lock()
	h.session = s
	h.mu.Unlock()
	return s, nil
}

// places are the files that the task's templates may name.
func (h *Hook) places(r *hook.TaskRequest, env *taskenv.Env) places {
	p := places{allocDir: h.Dir.Path, taskDir: h.Dir.TaskDir(r.Task.Name), free: h.Config.Unconfined, seen: map[string]string{}}
	for name, host := range map[string]string{"NOMAD_ALLOC_DIR": h.Dir.SharedDir(), "NOMAD_TASK_DIR": h.Dir.LocalDir(r.Task.Name),
		"NOMAD_SECRETS_DIR": h.Dir.SecretsDir(r.Task.Name)} {
		if dir, _ := env.Lookup(name); dir != "" {
			p.seen[dir] = host
		}
	}
	return p
}

// item reads and checks one template.
func (s *session) item(i int, spec *structs.Template, env *taskenv.Env) (*item, error) {
	it := &item{spec: spec, contents: structs.Val(spec.EmbeddedTmpl), quiet: newQuiet(spec.Wait, s.cfg.Wait, s.cfg.WaitBounds)}
	it.label = fmt.Sprintf("template %d (%s)", i+1, structs.Val(spec.DestPath))
	var errs structs.Errors
	add := func(err error) {
		if err != nil {
			errs.Add(fmt.Errorf("%s: %w", it.label, err))
		}
	}
	var err error
	it.dest, err = s.places.find(env.Replace(structs.Val(spec.DestPath)))
	add(err)
	it.owner.uid, it.owner.gid = id(spec.Uid), id(spec.Gid)
	it.owner.mode, err = permissions(structs.Val(spec.Perms))
	add(err)
	if source := structs.Val(spec.SourcePath); source != "" {
		from, err := s.places.find(env.Replace(source))
		if err == nil {
			var data []byte
			data, err = from.read()
			it.contents = string(data)
		}
		add(err)
	}
	if len(it.contents) > maxFile {
		add(structs.Errorf(structs.CodeInvalid, "its text has %d bytes, above %d", len(it.contents), maxFile))
	}
	switch structs.Val(spec.ChangeMode) {
	case structs.ChangeModeSignal:
		_, err := driver.ParseSignal(structs.Val(spec.ChangeSignal))
		add(err)
	case structs.ChangeModeScript:
		if s.script == nil {
			add(errors.New(`change_mode "script" needs a driver that runs commands in its tasks, which this one does not`))
		}
	}
	return it, errs.Err()
}

func id(n *int) int {
	if n == nil || *n < 0 {
		return -1
	}
	return *n
}
