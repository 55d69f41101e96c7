package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

const (
	// callLimit bounds one message to the servers, waiting for a session included.
	callLimit  = 30 * time.Second
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	// leaveLimit is how long a stop waits for the servers to take its services away. It is short: a node that cannot
	// reach its servers must stop what it is to stop all the same.
	leaveLimit = 5 * time.Second
)

// Servers take what the node offers.
type Servers interface {
	UpdateServices(ctx context.Context, req structs.NodeServicesRequest) error
}

// Store keeps what is offered, by its owner. An empty list deletes. It must not block.
type Store interface {
	SaveServices(owner string, list []*structs.ServiceRegistration)
}

// Config is what a Registry works with.
type Config struct {
	Servers Servers
	Store   Store
	// Reachable says whether the servers have been heard lately; nil means always. What leaves does not wait for servers
	// that have not.
	Reachable func() bool
	Logger    hclog.Logger
}

// Registry is what this node offers. Its methods are safe for concurrent use. Registrations that it was given must not
// be changed any more.
type Registry struct {
	cfg  Config
	wake chan struct{}
	over chan struct{} // closed when Run has ended

	mu        sync.Mutex
	owners    map[string][]*structs.ServiceRegistration
	sent      map[structs.ServiceKey]*structs.ServiceRegistration // what the servers have, unless whole
	whole     bool                                                // the next message has to say everything
	session   uint64
	version   uint64    // of what is offered
	confirmed uint64    // the version which the servers have
	since     time.Time // of the oldest change which they do not have
	changed   chan struct{}
}

// New makes a registry that offers nothing and sends nothing until Run.
func New(cfg Config) *Registry {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Reachable == nil {
		cfg.Reachable = func() bool { return true }
	}
	return &Registry{
		cfg: cfg, wake: make(chan struct{}, 1), over: make(chan struct{}), owners: map[string][]*structs.ServiceRegistration{},
		whole: true, version: 1, changed: make(chan struct{}),
	}
}

// Owner names what offers services: an allocation's group, or with a task's name that task.
func Owner(allocID, task string) string {
	if task == "" {
		return allocID
	}
	return allocID + "/" + task
}

// Restore takes over what an earlier agent offered, before Run.
func (r *Registry) Restore(owner string, list []*structs.ServiceRegistration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[owner] = list
}

// Set says what an owner offers from now on, in place of what it offered. It returns at once.
func (r *Registry) Set(owner string, list []*structs.ServiceRegistration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.EqualFunc(r.owners[owner], list, same) {
		return
	}
	if len(list) == 0 {
		delete(r.owners, owner)
	} else {
		r.owners[owner] = list
	}
	r.cfg.Store.SaveServices(owner, list)
	if r.version == r.confirmed {
		r.since = time.Now()
	}
	r.version++
	r.nudge()
}

func same(a, b *structs.ServiceRegistration) bool {
	return a.ID == b.ID && a.ServiceName == b.ServiceName && a.Namespace == b.Namespace && a.Address == b.Address &&
		a.Port == b.Port && slices.Equal(a.Tags, b.Tags)
}

// Leave ends what an owner offers, and waits until the servers have taken it away. It fails when they have not done so
// within a short time, counted from the first change that they do not have, so that the many services of a stop do not
// each wait for it; they will be told as soon as that is possible.
func (r *Registry) Leave(ctx context.Context, owner string) error {
	r.Set(owner, nil)
	r.mu.Lock()
	version, since := r.version, r.since
	r.mu.Unlock()
	left := leaveLimit
	if !since.IsZero() {
		left -= time.Since(since)
	}
	limit := time.NewTimer(left)
	defer limit.Stop()
	for {
		r.mu.Lock()
		confirmed, changed := r.confirmed, r.changed
		r.mu.Unlock()
		if confirmed >= version {
			return nil
		}
		if !r.cfg.Reachable() {
			return errors.New("deregister services: the servers cannot be reached, they will be told later")
		}
		select {
		case <-changed:
		case <-r.over: // the agent ends, and nobody tells the servers any more
			return nil
		case <-limit.C:
			return fmt.Errorf("deregister services: the servers have not confirmed within %s, they will be told later", leaveLimit)
		case <-ctx.Done():
			return fmt.Errorf("deregister services: %w", context.Cause(ctx))
		}
	}
}

// Connected says that there is a new session with the servers: everything is told anew.
func (r *Registry) Connected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session++
	r.whole = true
	r.nudge()
}

func (r *Registry) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run tells the servers what changes, at once; what changes while a message is under way goes with the next one. It
// begins once ready is closed, and blocks until ctx is done. It is called once.
func (r *Registry) Run(ctx context.Context, ready <-chan struct{}) {
	defer close(r.over)
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	backoff := minBackoff
	for ctx.Err() == nil {
		m := r.next()
		if err := r.send(ctx, m); err != nil {
			if ctx.Err() != nil {
				return
			}
			r.cfg.Logger.Warn("servers did not take the services, trying again", "error", err, "retry", backoff)
			r.failed()
			r.pause(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minBackoff
		if r.confirm(m) {
			select {
			case <-r.wake:
			case <-ctx.Done():
			}
		}
	}
}

// pause waits before a message is sent again; a new session ends it.
func (r *Registry) pause(ctx context.Context, backoff time.Duration) {
	timer := time.NewTimer(backoff + rand.N(backoff/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// message is one request with what it is about.
type message struct {
	req     structs.NodeServicesRequest
	offered map[structs.ServiceKey]*structs.ServiceRegistration
	version uint64
	session uint64
}

// next makes the message that brings the servers up to date.
func (r *Registry) next() message {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := message{version: r.version, session: r.session, offered: map[structs.ServiceKey]*structs.ServiceRegistration{}}
	for _, list := range r.owners {
		for _, s := range list {
			m.offered[structs.ServiceKey{Namespace: s.Namespace, ID: s.ID}] = s
		}
	}
	if r.whole {
		m.req = structs.NodeServicesRequest{Complete: true, Upsert: slices.Collect(maps.Values(m.offered))}
		return m
	}
	for key, s := range m.offered {
		if r.sent[key] != s {
			m.req.Upsert = append(m.req.Upsert, s)
		}
	}
	for key := range r.sent {
		if m.offered[key] == nil {
			m.req.Delete = append(m.req.Delete, key)
		}
	}
	return m
}

func (r *Registry) send(ctx context.Context, m message) error {
	if !m.req.Complete && len(m.req.Upsert) == 0 && len(m.req.Delete) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return r.cfg.Servers.UpdateServices(ctx, m.req)
}

// confirm notes what the servers have, and says whether that is everything.
func (r *Registry) confirm(m message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.confirmed = m.offered, m.version
	if r.version != r.confirmed { // what came meanwhile goes with the next message
		r.since = time.Now()
	}
	if m.session == r.session {
		r.whole = false
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return !r.whole && r.version == m.version
}

// failed makes the next message say everything: nobody knows whether the last one arrived.
func (r *Registry) failed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole = true
}
