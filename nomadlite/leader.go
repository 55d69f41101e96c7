package nomadlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/cluster"
	"github.com/nomadlite/nomadlite/nomadlite/deploy"
	"github.com/nomadlite/nomadlite/nomadlite/drain"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/periodic"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/structs"
)

// followLeadership begins the leader's duties when raft elects this server and ends them, wholly, when it is the leader
// no more.
func (s *Server) followLeadership(ctx context.Context, log *cluster.Raft, membership *cluster.Membership) error {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case leading := <-log.LeaderCh():
			end()
			end = func() {}
			if !leading {
				s.log.Info("this server no longer leads")
				continue
			}
			s.log.Info("this server was elected leader")
			end = s.beginTerm(ctx, log, membership)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// beginTerm begins the leader's duties; end stops them and waits for them.
func (s *Server) beginTerm(ctx context.Context, log *cluster.Raft, membership *cluster.Membership) (end func()) {
	term, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.lead.establishFor(term, func() error { return s.reign(term, log, membership) }, s.log) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// establishFor runs one reign after the other for as long as raft says that this server leads: a reign that fails (its
// barrier timed out, a room stopped) begins again from a full read.
func (l *leadership) establishFor(term context.Context, reign func() error, log hclog.Logger) {
	for term.Err() == nil {
		err := reign()
		l.establish(false)
		if term.Err() != nil {
			return
		}
		if errors.Is(err, errRestored) {
			log.Info("the leader's duties begin again: a snapshot was restored")
			continue
		}
		log.Error("the leader's duties stopped and begin again", "error", err)
		select {
		case <-time.After(time.Second):
		case <-term.Done():
		}
	}
}

// reign does the leader's duties under term. Each of them first reads the whole state; requests count as served by the
// leader once all have begun.
func (s *Server) reign(term context.Context, log *cluster.Raft, membership *cluster.Membership) error {
	if err := log.Barrier(term); err != nil {
		return fmt.Errorf("wait for the state to catch up: %w", err)
	}
	epoch, restored := s.store.History()
	ctx, cancel := context.WithCancelCause(term)
	defer cancel(nil)
	var wg, begun sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	duty := func(what string, f func(ready func()) error) {
		begun.Add(1)
		var once sync.Once
		ready := func() { once.Do(begun.Done) }
		wg.Go(func() {
			defer ready()
			if err := f(ready); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	applier := plan.NewApplier(plan.Config{Logger: s.cfg.Logger.Named("plan"), Queue: s.plans, Raft: log,
		Snapshot: func() plan.State { return s.store.Snapshot().Scheduler() }, Token: s.evals.Token,
		Alloc: func(id string) *structs.Allocation { return s.store.Alloc(nil, id) }, NewID: uuid.New, Now: time.Now,
		Pipeline: s.cfg.PlanApplyPipeline})
	rollouts := deploy.New(deploy.Config{Logger: s.cfg.Logger.Named("deploy"), Store: s.store, Raft: log, NewID: uuid.New})
	drains := drain.New(drain.Config{Logger: s.cfg.Logger.Named("drain"), Store: s.store, Raft: log, NewID: uuid.New})
	launches := periodic.New(periodic.Config{Logger: s.cfg.Logger.Named("periodic"), Store: s.store, Raft: log, NewID: uuid.New})
	duty("hand out evaluations", func(ready func()) error { return s.evals.Run(ctx, s.store, log, ready) })
	duty("apply plans", func(ready func()) error { return applier.Run(ctx, ready) })
	duty("await heartbeats", func(ready func()) error { return s.beats.Run(ctx, ready) })
	duty("watch deployments", func(ready func()) error { return rollouts.Run(ctx, ready) })
	duty("drain nodes", func(ready func()) error { return drains.Run(ctx, ready) })
	duty("launch periodic jobs", func(ready func()) error { return launches.Run(ctx, ready) })
	duty("collect garbage", func(ready func()) error { ready(); return s.garbage.Run(ctx) })
	duty("admit servers", func(ready func()) error { ready(); return membership.Admit(ctx) })
	duty("keep keys", func(ready func()) error { ready(); return s.makeKey(ctx) })
	duty("notice a restore", func(ready func()) error {
		ready()
		select {
		case <-restored:
			return errRestored
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	begun.Wait()
	if ctx.Err() == nil {
		s.reigned.Store(&epoch)
		s.lead.establish(true)
		s.log.Info("the leader's duties have begun")
		if err := s.nameCluster(ctx, log); err != nil && ctx.Err() == nil {
			s.log.Error("the cluster could not be given an id", "error", err)
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// makeKey makes sure that there is a signing key; it tries again until there is.
func (s *Server) makeKey(ctx context.Context) error {
	for {
		err := s.keys.Lead(ctx)
		if err == nil {
			<-ctx.Done() // a duty ends with its term
			return ctx.Err()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.log.Warn("root key could not be made", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nameCluster stores, once in the life of a cluster, its id and the configuration that it begins with.
func (s *Server) nameCluster(ctx context.Context, log *cluster.Raft) error {
	if s.store.ClusterID(nil) != "" {
		return nil
	}
	now := time.Now().UnixNano()
	_, _, err := log.Apply(ctx, fsm.KindClusterMeta, &fsm.ClusterMeta{ClusterID: uuid.New(), Now: now})
	if err == nil && s.cfg.DefaultSchedulerConfig != nil {
		_, _, err = log.Apply(ctx, fsm.KindSchedulerConfig, &fsm.SchedulerConfig{Config: s.cfg.DefaultSchedulerConfig})
	}
	return err
}

// catchUp closes Ready once this server knows a leader and its state holds what the leader's held.
func (s *Server) catchUp(ctx context.Context) error {
	for {
		changed := s.lead.LeaderChanged()
		err := s.caughtUp(ctx)
		if err == nil {
			s.once.Do(func() { close(s.ready) })
			return nil
		}
		s.log.Debug("not caught up yet", "error", err)
		var again <-chan time.Time
		if !errors.Is(err, structs.ErrNoLeader) {
			again = time.After(200 * time.Millisecond) // the leader could not be asked; it may have begun meanwhile
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) caughtUp(ctx context.Context) error {
	if s.lead.IsLeader() {
		return nil
	}
	if s.lead.LeaderAddr() == "" || s.lead.LeaderAddr() == s.Addr() {
		return structs.ErrNoLeader
	}
	index, err := s.leaderIndex(ctx)
	if err != nil {
		return err
	}
	return s.store.WaitIndex(ctx, index)
}
