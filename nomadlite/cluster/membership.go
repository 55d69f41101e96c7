package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// HelloPath is where servers introduce themselves to each other.
const HelloPath = "/v1/internal/cluster/hello"

// Caller gives what sends requests to the server at an address (host:port of its 4647), over an authenticated session.
type Caller interface {
	Peer(addr string) http.RoundTripper
}

// MembershipConfig is what a Membership works with.
type MembershipConfig struct {
	Logger        hclog.Logger
	Self          Member
	Join          []string      // addresses to begin with (retry_join, start_join)
	RetryInterval time.Duration // between two attempts to reach one that does not answer; default 30 s
	RetryMax      int           // attempts before Run gives up when none answered; 0: for ever
	Probe         time.Duration // between two visits of a known member; default 1 s
	Caller        Caller
	Raft          *Raft
}

// Membership lets servers find each other, bootstrap together and see who is alive.
type Membership struct {
	cfg MembershipConfig

	mu      sync.Mutex
	roster  *Roster
	changed chan struct{} // closed when a member is new, has moved, failed or returned
	failed  map[string]bool
	poke    chan struct{} // a token: visit everybody now

	changing chan struct{} // has a token while the leader changes who votes
}

// NewMembership makes the membership of a server that knows nobody yet.
func NewMembership(cfg MembershipConfig) *Membership {
	if cfg.RetryInterval == 0 {
		cfg.RetryInterval = 30 * time.Second
	}
	if cfg.Probe == 0 {
		cfg.Probe = time.Second
	}
	cfg.Self.Started = time.Now().UnixNano()
	return &Membership{cfg: cfg, changing: make(chan struct{}, 1), roster: NewRoster(cfg.Self, 5*cfg.Probe), changed: make(chan struct{}),
		failed: map[string]bool{}, poke: make(chan struct{}, 1)}
}

// hello is the message of an introduction, and its answer.
type hello struct {
	From  Member
	Peers []Member
}

// Routes are what other servers call.
func (m *Membership) Routes() []route.Route {
	return []route.Route{
		{Methods: []string{http.MethodPost}, Path: HelloPath, ServedBy: route.Local, Callers: route.ServerSession,
			Handle: m.serveHello},
		{Methods: []string{http.MethodPost}, Path: leavePath, ServedBy: route.Leader, Callers: route.ServerSession,
			Handle: m.serveLeave},
	}
}

func (m *Membership) serveHello(w http.ResponseWriter, r *route.Request) error {
	var h hello
	if err := json.NewDecoder(r.Body).Decode(&h); err != nil {
		return structs.Errorf(structs.CodeInvalid, "read introduction: %w", err)
	}
	m.take(h)
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(m.introduction())
}

func (m *Membership) introduction() hello {
	m.mu.Lock()
	defer m.mu.Unlock()
	return hello{From: m.roster.Self(), Peers: m.roster.Peers()}
}

// take takes in an introduction. Who is new here is news for the others as well: visit them.
func (m *Membership) take(h hello) {
	now := time.Now()
	m.mu.Lock()
	fresh := m.roster.Heard(h.From, now)
	for _, p := range h.Peers {
		m.roster.Named(p, now)
	}
	if fresh {
		m.announceLocked()
	}
	m.mu.Unlock()
	if fresh && h.From.Left {
		m.cfg.Logger.Info("server left", "name", h.From.Name, "addr", h.From.Addr, "id", h.From.ID)
	} else if fresh {
		m.cfg.Logger.Info("server joined", "name", h.From.Name, "addr", h.From.Addr, "id", h.From.ID)
		select {
		case m.poke <- struct{}{}:
		default:
		}
	}
	m.bootstrap(now)
}

func (m *Membership) announceLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Changed gives a channel which is closed when a member is new, has moved, failed or returned next.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// judge tells of members that fell silent or are heard again.
func (m *Membership) judge(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roster.Reap(now, leftKept)
	for _, p := range m.roster.Peers() {
		failed := m.roster.Status(p.ID, now) == StatusFailed
		if failed == m.failed[p.ID] {
			continue
		}
		if failed {
			m.failed[p.ID] = true
			m.cfg.Logger.Warn("server does not answer any more", "name", p.Name, "addr", p.Addr)
		} else {
			delete(m.failed, p.ID)
			m.cfg.Logger.Info("server answers again", "name", p.Name, "addr", p.Addr)
		}
		m.announceLocked()
	}
}

// bootstrap begins the cluster as soon as everybody agrees who begins it.
func (m *Membership) bootstrap(now time.Time) {
	m.mu.Lock()
	if m.cfg.Raft.Bootstrapped() {
		m.roster.SetBootstrapped()
		m.mu.Unlock()
		return
	}
	founders, ok := m.roster.Founders(now)
	m.mu.Unlock()
	if !ok {
		return
	}
	m.cfg.Logger.Info("all expected servers are known, beginning the cluster", "servers", len(founders))
	if err := m.cfg.Raft.Bootstrap(founders); err != nil {
		m.cfg.Logger.Error("cluster could not be begun", "error", err)
	}
	m.mu.Lock()
	m.roster.SetBootstrapped()
	m.mu.Unlock()
}

// Run joins and then visits every member at intervals, until ctx ends.
func (m *Membership) Run(ctx context.Context) error {
	m.bootstrap(time.Now())
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wg.Go(func() {
		if err := m.join(ctx); err != nil {
			cancel(err)
		}
	})
	tick := time.NewTicker(m.cfg.Probe)
	defer tick.Stop()
	for {
		m.visitAll(ctx)
		m.judge(time.Now())
		select {
		case <-tick.C:
		case <-m.poke:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join tries the configured addresses until each has answered once.
func (m *Membership) join(ctx context.Context) error {
	left := map[string]bool{}
	for _, addr := range m.cfg.Join {
		left[addr] = true
	}
	joined := false
	wait := 200 * time.Millisecond // servers started together answer soon; then the configured interval
	for attempt := 1; len(left) > 0; attempt++ {
		for addr := range left {
			err := m.visit(ctx, addr)
			if err == nil {
				joined = true
				delete(left, addr)
			} else if ctx.Err() == nil && attempt%10 == 1 {
				m.cfg.Logger.Warn("server to join does not answer", "addr", addr, "error", err)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if m.cfg.RetryMax > 0 && attempt >= m.cfg.RetryMax && !joined {
			return fmt.Errorf("join cluster: none of %d servers answered in %d attempts", len(m.cfg.Join), attempt)
		}
		select {
		case <-time.After(min(wait, m.cfg.RetryInterval)):
			wait *= 2
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// visitAll introduces this server to every member it knows, side by side.
func (m *Membership) visitAll(ctx context.Context) {
	voters := m.cfg.Raft.Voters() // a restarted server finds the others again by raft's own configuration
	m.mu.Lock()
	for _, v := range voters {
		m.roster.Named(Member{ID: v.ID, Addr: v.Addr, Region: m.cfg.Self.Region}, time.Now())
	}
	peers := m.roster.Peers()
	m.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range peers {
		if _, votes := without(voters, p.ID); p.Left && !votes {
			continue
		}
		wg.Go(func() {
			if err := m.visit(ctx, p.Addr); err != nil && ctx.Err() == nil {
				m.cfg.Logger.Debug("member does not answer", "addr", p.Addr, "error", err)
			}
		})
	}
	wg.Wait()
}

// visit introduces this server to the one at addr.
func (m *Membership) visit(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*m.cfg.Probe+time.Second)
	defer cancel()
	body, err := json.Marshal(m.introduction())
	if err != nil {
		return fmt.Errorf("introduce server: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, HelloPath, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("introduce server: %w", err)
	}
	resp, err := m.cfg.Caller.Peer(addr).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("introduce server: %w", err)
	}
	defer resp.Body.Close() // read to its end
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return errors.New("introduce server: " + resp.Status + ": " + string(text))
	}
	var h hello
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		return fmt.Errorf("introduce server: %w", err)
	}
	m.take(h)
	return nil
}

// Admit makes every living member a voter that is none yet, until ctx ends. The leader runs it.
func (m *Membership) Admit(ctx context.Context) error {
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		changed := m.Changed()
		wait := time.Hour
		if err := m.admitAll(ctx); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			wait = time.Second
		}
		retry.Reset(wait)
		select {
		case <-changed:
		case <-retry.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// admitAll goes once through those that are alive; it gives the last failure.
func (m *Membership) admitAll(ctx context.Context) (failed error) {
	select {
	case m.changing <- struct{}{}:
		defer func() { <-m.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	alive := m.roster.Alive(time.Now())
	m.mu.Unlock()
	voters := map[string]string{}
	for _, v := range m.cfg.Raft.Voters() {
		voters[v.ID] = v.Addr
	}
	for _, p := range alive {
		if voters[p.ID] == p.Addr {
			continue
		}
		if err := m.cfg.Raft.AddVoter(ctx, Peer{ID: p.ID, Addr: p.Addr}); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.cfg.Logger.Warn("server could not be made a voter", "id", p.ID, "addr", p.Addr, "error", err)
			failed = err
			continue
		}
		m.cfg.Logger.Info("server is a voter now", "id", p.ID, "addr", p.Addr)
	}
	return failed
}

// Addrs are host:port of 4647 of all members that are alive, this server's first.
func (m *Membership) Addrs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []string{m.cfg.Self.Addr}
	for _, p := range m.roster.Alive(time.Now()) {
		if p.ID != m.cfg.Self.ID {
			out = append(out, p.Addr)
		}
	}
	return out
}

// ID is this server's raft id.
func (m *Membership) ID() string { return m.cfg.Self.ID }

// Self is this server as members are shown.
func (m *Membership) Self() *structs.AgentMember { return show(m.cfg.Self, StatusAlive) }

// Members are all known servers as members are shown, this one included.
func (m *Membership) Members() []*structs.AgentMember {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []*structs.AgentMember{show(m.roster.Self(), StatusAlive)}
	for _, p := range m.roster.Peers() {
		out = append(out, show(p, m.roster.Status(p.ID, time.Now())))
	}
	return out
}

func show(m Member, status string) *structs.AgentMember {
	host, portText, _ := net.SplitHostPort(m.Addr)
	port, _ := strconv.ParseUint(portText, 10, 16)
	return &structs.AgentMember{
		Name: m.Name + "." + m.Region, Addr: host, Port: uint16(port), Status: status,
		Tags: map[string]string{
			"role": "nomad", "id": m.ID, "region": m.Region, "dc": m.Datacenter, "build": structs.CompatVersion,
			"port": portText, "rpc_addr": host, "vsn": "1", "raft_vsn": "3", "expect": strconv.Itoa(m.Expect),
			"nomadlite": structs.Version,
		},
		ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2, DelegateMin: 2, DelegateMax: 5, DelegateCur: 4,
	}
}
