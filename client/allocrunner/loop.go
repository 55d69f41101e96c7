package allocrunner

import (
	"context"
	"time"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Run carries out decisions until everything is over, or until ctx is done; then running processes are left as they
// are. It is called once.
func (r *Runner) Run(ctx context.Context) {
	defer close(r.ended)
	defer r.settle()
	defer r.procs.Wait()
	r.Resume(ctx)
	for ctx.Err() == nil {
		known, live := r.tasksSettled() // before the step: it decides by no less
		if known && live {
			r.settle()
		}
		taken, left := r.Step(ctx)
		if taken {
			continue
		}
		if known {
			r.settle()
		}
		if r.Terminal() {
			return
		}
		r.idle(ctx, left)
	}
	r.detach()
}

// Resume lets tasks go on that an earlier agent had begun. Who takes the steps by himself, as a simulation does, calls it
// once and then Step; Run does both.
func (r *Runner) Resume(ctx context.Context) {
	r.keepBegin()
	for _, t := range r.tasks {
		v := t.runner.View()
		if v.Phase != taskrunner.Dead && (v.Phase != taskrunner.Waiting || v.Stopping) {
			r.startTask(ctx, t)
		}
	}
}

// Step carries out the next decision. taken is false when there is nothing to do until something changes or, when left
// is above 0, that time is over; for ever when the allocation is Terminal.
func (r *Runner) Step(ctx context.Context) (taken bool, left time.Duration) {
	r.applyUpdate(ctx)
	r.hasten()
	again := r.judgeHealth()
	r.previous = r.findPrevious()
	d := decide(r.view())
	switch d.Act {
	case finished:
		return false, 0
	case wait:
		if r.previous != nil {
			r.tellPrevious(r.previous)
		}
		r.mu.Lock()
		left, _ := r.leftToRun()
		r.mu.Unlock()
		return false, soonest(soonest(d.Left, again), left)
	}
	r.perform(ctx, d)
	return true, 0
}

// Settled is closed once what is observed holds for this agent too: each task of an earlier one was taken over or found
// to have ended, and what follows from that at once is done.
func (r *Runner) Settled() <-chan struct{} { return r.settled }

// tasksSettled says whether all tasks are, and whether one of them is not dead.
func (r *Runner) tasksSettled() (known, live bool) {
	for _, t := range r.tasks {
		dead := t.runner.View().Phase == taskrunner.Dead
		live = live || !dead
		if !t.started {
			continue
		}
		select {
		case <-t.runner.Settled():
		default:
			return false, live
		}
		if dead && !t.returned() {
			return false, live
		}
	}
	return true, live
}

// Ended is closed when Run has returned.
func (r *Runner) Ended() <-chan struct{} { return r.ended }

// detach tells hooks that the agent goes and the allocation stays.
func (r *Runner) detach() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.chain.Alloc(ctx, hook.Shutdown, hook.AllocRequest{Alloc: r.Alloc()}); err != nil {
		r.cfg.Logger.Warn("shutdown of the allocation's hooks failed", "alloc", r.ID(), "error", err)
	}
}

// view collects what the core decides on.
func (r *Runner) view() view {
	tasks := r.taskViews()
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{Record: r.local, Stop: r.alloc.ServerTerminal(), Leave: r.leaving, NoDelay: r.terms().NoShutdownDelay,
		Fenced: !r.local.Fence.IsZero(), Depart: r.departing, Previous: r.previous != nil, Tasks: tasks}
	if t := r.alloc.DesiredTransition; v.Stop && t.KillTimeout != nil {
		v.Urged = t.Urged
	}
	if g := r.alloc.Group(); g != nil && g.ShutdownDelay != nil {
		v.Delay = *g.ShutdownDelay
	}
	if d := r.delayLocked(); !d.IsZero() {
		v.Left = d.Remaining(r.cfg.Clock)
	}
	_, v.Overdue = r.leftToRun()
	return v
}

func (r *Runner) taskViews() []taskView {
	views := make([]taskView, len(r.tasks))
	for i, t := range r.tasks {
		tv := t.runner.View()
		// Dead only once its goroutine has returned too: a reset gives it another one.
		dead := tv.Phase == taskrunner.Dead && t.returned()
		views[i] = taskView{
			Name: t.name, Role: t.role, Leader: t.leader,
			Waiting: (!t.started || tv.Parked) && !dead, Held: t.started && tv.Phase == taskrunner.Waiting,
			Process: t.started && !tv.Parked && !dead, Dead: dead,
			Running: tv.State.State == structs.TaskStateRunning, Failed: tv.State.Failed,
			Ran: !tv.State.StartedAt.IsZero(), Stopping: tv.Stopping, Parking: tv.Parking,
		}
	}
	return views
}

// idle waits until something changes or the time is over. 0 means no time.
func (r *Runner) idle(ctx context.Context, left time.Duration) {
	var due <-chan time.Time
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	var over <-chan struct{}
	if r.previous != nil {
		over = r.previous.Over
	}
	select {
	case <-ctx.Done():
	case <-r.wake:
	case <-due:
	case <-over:
	}
}

func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// perform carries out one decision.
func (r *Runner) perform(ctx context.Context, d decision) {
	switch d.Act {
	case endTasks:
		r.beginEnd(d)
	case runPrerun:
		r.prerun(ctx)
	case release:
		r.release(ctx, r.named(d.Tasks))
	case runPrestop:
		r.prestop(ctx)
	case runPreKill:
		r.hooks(ctx, hook.PreKill, func(l *Local) { l.progress(func(p *progress) { p.PreKilled = true }) })
	case beginDelay:
		r.beginDelay(ctx)
	case endDelay:
		r.endDelay()
	case kill:
		r.kill(ctx, r.named(d.Tasks))
	case park:
		r.park(r.named(d.Tasks))
	case runResume:
		r.resume(ctx)
	case resetTasks:
		r.reset()
	case runPostrun:
		r.finish(ctx)
	}
}

// release lets tasks start. In an end these are poststop tasks: what had been asked of the stop before is not meant for
// them, and that is on disk before they are.
func (r *Runner) release(ctx context.Context, tasks []*task) {
	r.mu.Lock()
	if r.local.Cause != NotEnding {
		urged := r.alloc.DesiredTransition.Urged
		r.changeLocked(func(l *Local) { l.Poststop = &urged })
	}
	r.mu.Unlock()
	for _, t := range tasks {
		t.runner.Release()
		r.startTask(ctx, t)
	}
}

func (r *Runner) named(names []string) []*task {
	var out []*task
	for _, t := range r.tasks {
		for _, name := range names {
			if t.name == name {
				out = append(out, t)
			}
		}
	}
	return out
}

// startTask gives the task its goroutine, or what takes its place.
func (r *Runner) startTask(ctx context.Context, t *task) {
	if t.started {
		return
	}
	done := make(chan struct{})
	t.started, t.done = true, done
	ended := func() {
		close(done)
		r.nudge()
	}
	if r.cfg.Start != nil {
		r.cfg.Start(t.runner, ended)
		return
	}
	r.procs.Go(func() {
		t.runner.Run(ctx)
		ended()
	})
}

func (r *Runner) request() hook.AllocRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return hook.AllocRequest{Alloc: r.alloc, Attempt: r.local.Restarts + 1, NoShutdownDelay: r.terms().NoShutdownDelay}
}

// prerun may be interrupted by a stop; a fault fails every task.
func (r *Runner) prerun(ctx context.Context) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	if left, _ := r.leftToRun(); left > 0 {
		alarm := time.AfterFunc(left, cancel)
		defer alarm.Stop()
	}
	if r.alloc.ServerTerminal() || r.leaving || r.departing || !r.local.Fence.IsZero() {
		cancel()
	}
	r.interrupt = cancel
	r.mu.Unlock()
	err := r.chain.Alloc(inner, hook.Prerun, r.request())
	r.mu.Lock()
	r.interrupt = nil
	r.mu.Unlock()
	switch {
	case inner.Err() != nil:
	case err != nil:
		r.cfg.Logger.Error("allocation cannot be prepared", "alloc", r.ID(), "error", err)
		for _, t := range r.tasks {
			t.runner.Emit(taskrunner.EventSetupFailure(err))
		}
		r.change(func(l *Local) { l.Cause = PrerunFailed })
	default:
		r.change(func(l *Local) { l.Prerun, l.Begun = true, r.cfg.Clock.Now().UTC() })
	}
}

// hooks runs a point that must not keep the end from going on.
func (r *Runner) hooks(ctx context.Context, point hook.Point, then func(l *Local)) {
	if err := r.chain.Alloc(ctx, point, r.request()); err != nil {
		if ctx.Err() != nil {
			return
		}
		r.cfg.Logger.Warn("hook failed, the end goes on", "alloc", r.ID(), "error", err)
	}
	r.change(then)
}

func (r *Runner) prestop(ctx context.Context) {
	if err := r.chain.Alloc(ctx, hook.Prestop, r.request()); err != nil && ctx.Err() == nil {
		r.cfg.Logger.Warn("prestop hook failed, the stop goes on", "alloc", r.ID(), "error", err)
	}
	for _, t := range r.tasks {
		if r.concerned(t) {
			_ = t.runner.Prestop(ctx) // told by the task's own event
		}
	}
	if ctx.Err() == nil {
		r.change(func(l *Local) { l.progress(func(p *progress) { p.Prestopped = true }) })
	}
}

// beginEnd notes why everything ends. Each task's events say so when it is asked to end.
func (r *Runner) beginEnd(d decision) {
	r.change(func(l *Local) {
		if a := l.RestartAll; a != nil { // what was done for a restart under way is not done again, nor waited for again
			l.Prestopped, l.PreKilled, l.Delay = a.Prestopped && !a.Resumed, a.PreKilled && !a.Resumed, a.Delay
			if a.Resumed {
				l.Delay, l.Restarts = boottime.Deadline{}, l.Restarts+1
			}
		}
		l.Cause, l.RestartAll = d.Cause, nil
	})
	r.mu.Lock()
	departing := r.departing
	r.mu.Unlock()
	var why *structs.TaskEvent
	for _, t := range r.tasks {
		switch d.Cause {
		case TaskFailed:
			why = taskrunner.EventSiblingFailed(d.Task)
		case LeaderDead:
			why = taskrunner.EventLeaderDead()
		case MainDead:
			why = taskrunner.EventMainDead()
		case AgentLeaving:
			if departing { // what a dev agent ends is thrown away
				why = taskrunner.EventNodeLeaving()
			}
		case LeaseOver:
			why = taskrunner.EventLeaseOver()
		case RanTooLong:
			why = taskrunner.EventRanTooLong(descTooLong)
		}
		if v := t.runner.View(); why != nil && v.Phase != taskrunner.Dead && t.role != rolePoststop {
			t.runner.Emit(why)
		}
	}
}

// beginDelay writes the deadline of the group's shutdown_delay before it is waited for.
func (r *Runner) beginDelay(ctx context.Context) {
	delay := structs.Val(r.Alloc().Group().ShutdownDelay)
	durable := r.change(func(l *Local) { l.progress(func(p *progress) { p.Delay = boottime.After(r.cfg.Clock, delay) }) })
	r.emitToProcesses(func() *structs.TaskEvent { return taskrunner.EventGroupDelay(delay) })
	select {
	case <-durable:
	case <-ctx.Done():
	}
}

func (r *Runner) endDelay() {
	r.mu.Lock()
	delay := r.delayLocked()
	cut := delay.IsZero() || delay.Remaining(r.cfg.Clock) > 0
	r.mu.Unlock()
	if cut {
		r.emitToProcesses(taskrunner.EventSkippingDelay)
	}
	r.change(func(l *Local) { l.progress(func(p *progress) { p.Delayed = true }) })
}

func (r *Runner) emitToProcesses(make func() *structs.TaskEvent) {
	for _, t := range r.tasks {
		v := t.runner.View()
		if t.started && v.Phase != taskrunner.Dead && !v.Parked && t.role != rolePoststop && r.concerned(t) {
			t.runner.Emit(make())
		}
	}
}

func (r *Runner) kill(ctx context.Context, tasks []*task) {
	r.mu.Lock()
	order := r.terms()
	r.mu.Unlock()
	for _, t := range tasks {
		t.runner.Kill(order)
		r.startTask(ctx, t)
	}
}

// hasten hands terms that became stricter to the tasks that are ending already.
func (r *Runner) hasten() {
	r.mu.Lock()
	order := r.terms()
	changed := order.NoShutdownDelay != r.applied.NoShutdownDelay ||
		structs.Val(order.KillTimeout) != structs.Val(r.applied.KillTimeout) ||
		(order.KillTimeout == nil) != (r.applied.KillTimeout == nil)
	r.applied = order
	ending := r.local.Cause != NotEnding || r.local.RestartAll != nil
	r.mu.Unlock()
	if !changed || !ending {
		return
	}
	for _, t := range r.tasks {
		switch v := t.runner.View(); {
		case v.Stopping:
			t.runner.Kill(order)
		case v.Parking:
			t.runner.Park(order)
		}
	}
}

// finish runs the postrun hooks; then the allocation is over.
func (r *Runner) finish(ctx context.Context) {
	if err := r.chain.Alloc(ctx, hook.Postrun, r.request()); err != nil {
		if ctx.Err() != nil {
			return
		}
		r.cfg.Logger.Warn("postrun hook failed", "alloc", r.ID(), "error", err)
	}
	select {
	case <-r.change(func(l *Local) { l.Done = true }):
		close(r.over)
	case <-ctx.Done():
	}
}

// applyUpdate hands an in-place update to hooks and tasks.
func (r *Runner) applyUpdate(ctx context.Context) {
	r.mu.Lock()
	updated, alloc := r.updated, r.alloc
	r.updated = false
	r.mu.Unlock()
	if !updated {
		return
	}
	if err := r.chain.Alloc(ctx, hook.Update, r.request()); err != nil && ctx.Err() == nil {
		r.cfg.Logger.Warn("in-place update failed", "alloc", r.ID(), "error", err)
	}
	group := alloc.Group()
	for _, t := range r.tasks {
		spec := group.LookupTask(t.name)
		if spec == nil {
			continue
		}
		if err := t.runner.Update(ctx, alloc, spec); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("in-place update of a task failed", "alloc", r.ID(), "task", t.name, "error", err)
		}
	}
}

// judgeHealth observes the allocation for its deployment, or for drains that wait for it, and says when to look again.
func (r *Runner) judgeHealth() time.Duration {
	r.mu.Lock()
	alloc, local := r.alloc, r.local
	r.mu.Unlock()
	// An update in place brings the allocation into another deployment, for which it is judged anew.
	judged := local.Health != nil && local.Health.Healthy != nil && local.JudgedFor == alloc.DeploymentID
	if judged || local.Begun.IsZero() || alloc.ServerTerminal() {
		return 0
	}
	v := healthView{Begun: local.Begun, Tasks: r.taskViews()}
	var by string
	var wanted bool
	if v.MinHealthyTime, v.HealthyDeadline, by, wanted = healthTerms(alloc); !wanted {
		return 0
	}
	if by != structs.HealthCheckTaskStates {
		v.Checks = checksOf(alloc, r.cfg.Checks)
	}
	for i, t := range r.tasks {
		tv := t.runner.View()
		// Between the end of a process and what is decided about it, its task's state is still the one before.
		v.Tasks[i].Running = tv.Up
		v.StartedAt = append(v.StartedAt, tv.State.StartedAt)
	}
	now := r.cfg.Clock.Now()
	found := judge(v, now)
	if found.Healthy == nil {
		return found.Again
	}
	if !*found.Healthy {
		for _, t := range r.tasks {
			t.runner.Emit(taskrunner.EventAllocUnhealthy(found.Reason))
		}
	}
	status := &structs.AllocDeploymentStatus{Healthy: found.Healthy, Timestamp: now.UTC()}
	if alloc.DeploymentStatus != nil {
		status.Canary = alloc.DeploymentStatus.Canary
	}
	r.change(func(l *Local) { l.Health, l.JudgedFor = status, alloc.DeploymentID })
	return 0
}
