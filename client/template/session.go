package template

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/pause"
	"github.com/nomadlite/nomadlite/structs"
)

// missingAfter is how long the first rendering waits for an answer before the task's events say for what.
const missingAfter = 3 * time.Second

// retry bounds the wait between attempts to ask the servers, or to make a pass, after a failure that may pass.
const (
	minRetry = 250 * time.Millisecond
	maxRetry = time.Minute
)

// item is one template of a session. Only the session's goroutine touches it, except for what is said otherwise.
type item struct {
	spec     *structs.Template
	label    string // names it in errors and events
	contents string
	dest     place
	owner    owner
	quiet    quiet
	used     []Query
	rendered bool
	first    bool              // before a start that has not been yet; guarded by the session's lock
	env      map[string]string // of a template with env; guarded by the session's lock, replaced as a whole
}

// life is what the task is doing, as far as changes concern it.
type life uint8

const (
	down     life = iota // it will see what is rendered by then
	starting             // it may have seen what was there: what changes is told once it runs
	up
)

// session renders a task's templates and follows what they show.
type session struct {
	cfg       *Config
	namespace string
	env       []string
	places    places
	items     []*item
	control   hook.TaskControl
	script    Script // runs a change_script; nil when the task's driver cannot

	stop    context.CancelFunc
	done    chan struct{}
	ready   chan struct{} // closed once all are rendered
	news    chan news
	wake    chan struct{}
	watches map[Query]*watch
	asking  sync.WaitGroup

	mu      sync.Mutex
	life    life
	pending actions
	failure error // why it has ended, when ready was never closed or later
}

// watch follows one query.
type watch struct {
	cancel context.CancelFunc
	answer Answer
	have   bool
}

// news is an answer that a watch has got.
type news struct {
	query  Query
	answer Answer
}

// start lets the session run until stop, or until the agent ends.
func (s *session) start() {
	ctx, cancel := context.WithCancel(s.cfg.Life)
	s.stop, s.done, s.ready = cancel, make(chan struct{}), make(chan struct{})
	s.news, s.wake, s.watches = make(chan news), make(chan struct{}, 1), map[Query]*watch{}
	s.cfg.Go(func() {
		defer close(s.done)
		err := s.run(ctx)
		cancel()
		s.asking.Wait()
		s.fail(err)
	})
}

// end stops the session and waits for it.
func (s *session) end() {
	s.stop()
	<-s.done
}

func (s *session) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// fail tells why the session has ended by itself. While the task is about to start its prestart hook tells it.
func (s *session) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	s.failure = err
	tell := s.life != down || s.isReady()
	s.mu.Unlock()
	if tell {
		s.control.Emit(taskrunner.EventTemplate(err.Error()))
		s.control.Fail("Template failed: " + err.Error())
	}
}

// run is the session's goroutine. An error fails the task.
func (s *session) run(ctx context.Context) error {
	first := time.NewTimer(missingAfter)
	defer first.Stop()
	for {
		if err := s.renderDue(ctx); err != nil {
			return err
		}
		s.act(ctx)
		timer, due := s.timer()
		select {
		case <-ctx.Done():
		case n := <-s.news:
			s.learn(n)
		case <-s.wake:
		case <-due:
		case <-first.C:
			s.tellMissing()
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// timer gives the next moment at which something is to be done.
func (s *session) timer() (*time.Timer, <-chan time.Time) {
	var next time.Time
	for _, it := range s.items {
		if it.quiet.pending() && (next.IsZero() || it.quiet.due.Before(next)) {
			next = it.quiet.due
		}
	}
	s.mu.Lock()
	if s.pending.pending() && s.life == up && (next.IsZero() || s.pending.due.Before(next)) {
		next = s.pending.due
	}
	s.mu.Unlock()
	if next.IsZero() {
		timer := time.NewTimer(0)
		timer.Stop()
		return timer, nil
	}
	timer := time.NewTimer(time.Until(next))
	return timer, timer.C
}

// learn keeps an answer and notes which templates it concerns.
func (s *session) learn(n news) {
	w := s.watches[n.query]
	if w == nil {
		return // nobody uses it any more
	}
	w.answer, w.have = n.answer, true
	now := time.Now()
	for _, it := range s.items {
		if !it.uses(n.query) || it.rendered && structs.Val(it.spec.Once) {
			continue
		}
		if it.rendered {
			it.quiet.changed(now)
		} else {
			it.quiet.atOnce(now) // the task waits for it
		}
	}
}

func (it *item) uses(q Query) bool {
	for _, u := range it.used {
		if u == q {
			return true
		}
	}
	return false
}

// renderDue renders what is due, in order.
func (s *session) renderDue(ctx context.Context) error {
	all := true
	for _, it := range s.items {
		if it.quiet.pending() && !it.quiet.due.After(time.Now()) {
			it.quiet.rendered()
			if err := s.render(ctx, it); err != nil {
				return err
			}
			s.dropUnused()
		}
		all = all && it.rendered
	}
	if all && !s.isReady() {
		close(s.ready)
	}
	return nil
}

// render runs a template until nothing is missing, or something has to be waited for.
func (s *session) render(ctx context.Context, it *item) error {
	for {
		resp, err := s.pass(ctx, it)
		if err != nil {
			return err
		}
		it.used = resp.Used
		if len(resp.Missing) > 0 {
			again := false
			for _, q := range resp.Missing {
				again = s.follow(ctx, q) || again
			}
			if again {
				continue
			}
			return nil // an answer makes it due again
		}
		if resp.Fault != "" {
			return it.fault(errors.New(resp.Fault))
		}
		return s.finish(it, resp.Output)
	}
}

// fault is an error of the template itself, which no other attempt will mend.
func (it *item) fault(err error) error {
	return fmt.Errorf("%w: %s: %w", driver.ErrUnrecoverable, it.label, err)
}

// pass makes one pass. Failures that may pass are tried again.
func (s *session) pass(ctx context.Context, it *item) (*Response, error) {
	req := &Request{Contents: it.contents, LeftDelim: structs.Val(it.spec.LeftDelim), RightDelim: structs.Val(it.spec.RightDelim),
		ErrMissingKey: structs.Val(it.spec.ErrMissingKey), Denylist: s.cfg.Denylist, Env: s.env}
	for q, w := range s.watches {
		if w.have {
			req.Known = append(req.Known, Known{q, w.answer})
		}
	}
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		resp, err := s.cfg.Render(ctx, req)
		switch {
		case err == nil:
			return resp, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrBounds):
			return nil, it.fault(err)
		}
		s.cfg.Logger.Warn("template cannot be rendered, trying again", "template", it.label, "error", err)
		if !pause.For(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// follow begins to follow a query. now says that its answer is there.
func (s *session) follow(ctx context.Context, q Query) (now bool) {
	if w := s.watches[q]; w != nil {
		return w.have
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel}
	s.watches[q] = w
	if q.Kind == File {
		f, answer := s.look(q)
		w.answer, w.have = answer, true
		s.asking.Go(func() { s.watchFile(ctx, q, f, answer) })
		return true
	}
	s.asking.Go(func() { s.ask(ctx, q) })
	return false
}

// dropUnused ends the watches of queries that no template shows any more.
func (s *session) dropUnused() {
	used := map[Query]bool{}
	for _, it := range s.items {
		if it.rendered && structs.Val(it.spec.Once) {
			continue
		}
		for _, q := range it.used {
			used[q] = true
		}
	}
	for q, w := range s.watches {
		if !used[q] {
			w.cancel()
			delete(s.watches, q)
		}
	}
}

// finish writes what was rendered, and notes what the task is to be asked for.
func (s *session) finish(it *item, output []byte) error {
	if len(output) > maxFile {
		return it.fault(structs.Errorf(structs.CodeInvalid, "it gives %d bytes, above %d", len(output), maxFile))
	}
	var env map[string]string
	if structs.Val(it.spec.Envvars) {
		var err error
		if env, err = variables(output); err != nil {
			return it.fault(fmt.Errorf("what it gives is no list of variables: %w", err))
		}
	}
	changed, err := it.dest.write(output, it.owner)
	if err != nil {
		if code := structs.ErrorCode(err); code == structs.CodePermission || code == structs.CodeInvalid {
			return it.fault(err)
		}
		return fmt.Errorf("%s: %w", it.label, err)
	}
	first := !it.rendered
	it.rendered = true
	s.mu.Lock()
	defer s.mu.Unlock()
	it.env = env
	it.first = it.first || first && s.life == down
	if !changed || s.life == down {
		return nil
	}
	now, splay := time.Now(), structs.Val(it.spec.Splay)
	s.pending.add(it.spec, it.label, now, time.Duration(s.cfg.Random()*float64(splay)))
	return nil
}

// act asks the task for what is due.
func (s *session) act(ctx context.Context) {
	s.mu.Lock()
	if !s.pending.pending() || s.life != up || s.pending.due.After(time.Now()) {
		s.mu.Unlock()
		return
	}
	due := s.pending
	s.pending = actions{}
	s.mu.Unlock()
	if len(due.restart) > 0 {
		const why = "Template with change_mode restart re-rendered"
		if err := s.control.Restart(why); err != nil { // which its events do not tell of
			s.cfg.Logger.Debug("no restart of a task that is down or is to end", "error", err)
			return
		}
		s.control.Emit(taskrunner.EventTemplate(why + ": " + strings.Join(due.restart, ", ")))
		return // what is started anew has seen it all
	}
	for _, signal := range due.signals {
		if err := s.control.Signal(ctx, signal, "Template re-rendered"); err != nil && ctx.Err() == nil {
			s.control.Emit(taskrunner.EventTemplate(fmt.Sprintf("Template failed to send signal %s: %v", signal, err)))
		}
	}
	for _, c := range due.scripts {
		s.runScript(ctx, c)
	}
}

// runScript runs a change_script in the task.
func (s *session) runScript(ctx context.Context, c *structs.ChangeScript) {
	ctx, cancel := context.WithTimeout(ctx, structs.Val(c.Timeout))
	defer cancel()
	code, output, err := s.script(ctx, structs.Val(c.Command), c.Args)
	var what string
	switch {
	case err != nil:
		what = fmt.Sprintf("Template failed to run script %s: %v", structs.Val(c.Command), err)
	case code != 0:
		what = fmt.Sprintf("Template ran script %s with exit code %d: %.200s", structs.Val(c.Command), code, output)
	default:
		s.control.Emit(taskrunner.EventTemplate(fmt.Sprintf("Template successfully ran script %s with exit code 0", structs.Val(c.Command))))
		return
	}
	s.control.Emit(taskrunner.EventTemplate(what))
	if structs.Val(c.FailOnError) {
		s.control.Fail(what)
	}
}

// tellMissing says for what the task's start waits.
func (s *session) tellMissing() {
	var missing []string
	for _, it := range s.items {
		if it.rendered {
			continue
		}
		for _, q := range it.used {
			if w := s.watches[q]; w == nil || !w.have {
				missing = append(missing, q.String())
			}
		}
	}
	if len(missing) > 0 {
		s.control.Emit(taskrunner.EventTemplate("Missing: " + strings.Join(missing, ", ")))
	}
}

// become notes what the task is doing. What a task that goes down had still to be asked for is dropped: it sees it when it
// is started again.
func (s *session) become(l life) {
	s.mu.Lock()
	s.life = l
	if l == down {
		s.pending = actions{}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// begin gives the variables of all templates for a start, from which on changes concern the task.
func (s *session) begin() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	env := map[string]string{}
	for _, it := range s.items {
		for k, v := range it.env {
			env[k] = v
		}
	}
	s.life, s.pending = starting, actions{}
	for _, it := range s.items {
		if c := it.spec.ChangeScript; it.first && c != nil && structs.Val(c.RunOnFirstRender) {
			s.pending.add(it.spec, it.label, time.Now(), 0)
		}
		it.first = false
	}
	return env
}
