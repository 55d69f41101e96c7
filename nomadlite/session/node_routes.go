package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Paths of the node protocol. Bodies are CBOR, the messages are in structs/node_protocol.go.
const (
	pathRegister    = "/v1/internal/node/register"
	pathHeartbeat   = "/v1/internal/node/heartbeat"
	pathAssignments = "/v1/internal/node/assignments"
	pathAllocs      = "/v1/internal/node/allocs"
	pathServices    = "/v1/internal/node/services"
	pathLeave       = "/v1/internal/node/leave"
	pathAway        = "/v1/internal/node/away"
	pathIndex       = "/v1/internal/session/index" // between servers
)

// settleLimit bounds how long a heartbeat waits until the state says what it led to.
const settleLimit = time.Second

// Applier commits a command and waits until this server's state holds it.
type Applier interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
}

// Heartbeats is the leader's duty about nodes. It writes the status of a node that comes (back) to life.
type Heartbeats interface {
	// Beat renews a node's TTL and says when the next heartbeat is due; fresh lets the node become ready.
	Beat(ctx context.Context, nodeID string, fresh bool) (ttl time.Duration, err error)
	// Forget drops what is awaited of a node that has left.
	Forget(nodeID string)
	// Reconsider looks again at the maintenance which a node has in the state.
	Reconsider(nodeID string)
}

// NodeConfig is what the node protocol works with.
type NodeConfig struct {
	Logger      hclog.Logger
	Store       *state.Store
	Raft        Applier
	Heartbeats  Heartbeats
	Assignments *Assignments
	Servers     func() []string // host:port of each server's 4647
	Now         func() time.Time
	// Forwarder lets every server answer the polls of the nodes that are connected to it: it asks the leader only
	// whether its own state is current, and only when it must. Nil leaves all polls to the leader.
	Forwarder LeaderAsker
}

// LeaderAsker sends this server's own requests to the leader; ErrIsLeader says that this server leads.
type LeaderAsker interface {
	Do(req *http.Request) (*http.Response, error)
}

var _ LeaderAsker = (*Forwarder)(nil)

// NodeProtocol answers what nodes ask.
type NodeProtocol struct {
	cfg       NodeConfig
	log       hclog.Logger
	observer  *observer
	registrar *registrar

	mu          sync.Mutex
	registering map[string]chan struct{} // nodes whose registration is being written
}

// NewNodeProtocol makes the handlers. Close waits for entries that are being written.
func NewNodeProtocol(cfg NodeConfig) *NodeProtocol {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Servers == nil {
		cfg.Servers = func() []string { return nil }
	}
	if cfg.Forwarder != nil && cfg.Assignments != nil {
		cfg.Assignments.verify = newCatchUp(cfg.Store, cfg.Assignments.verify, cfg.Forwarder).run
	}
	return &NodeProtocol{
		cfg: cfg, log: cfg.Logger.Named("node"), registering: map[string]chan struct{}{},
		observer:  newObserver(cfg.Raft, storeReader{cfg.Store}, cfg.Now),
		registrar: newRegistrar(cfg.Raft, cfg.Store),
	}
}

// storeReader reads the newest state for the observer.
type storeReader struct{ store *state.Store }

func (r storeReader) AllocOf(id string) *structs.Allocation   { return r.store.Alloc(nil, id) }
func (r storeReader) JobOf(namespace, id string) *structs.Job { return r.store.Job(nil, namespace, id) }

// Close waits for entries that are being written. No request may come any more.
func (p *NodeProtocol) Close() error {
	p.observer.flushes.Wait()
	p.registrar.flushes.Wait()
	return nil
}

// Routes are the rows of the node protocol, for the node and server sessions' muxes.
func (p *NodeProtocol) Routes() []route.Route {
	row := func(path string, h route.Handler) route.Route {
		return route.Route{Methods: []string{http.MethodPut}, Path: path, ServedBy: route.Leader,
			Callers: route.NodeSession, Handle: h}
	}
	polls := row(pathAssignments, p.assignments)
	if p.cfg.Forwarder != nil {
		polls.ServedBy = route.Any
	}
	return []route.Route{
		row(pathRegister, p.register),
		row(pathHeartbeat, p.heartbeat),
		polls,
		row(pathAllocs, p.allocs),
		row(pathServices, p.services),
		row(pathLeave, p.leave),
		row(pathAway, p.away),
		{Methods: []string{http.MethodGet}, Path: pathIndex, ServedBy: route.Leader, Callers: route.ServerSession,
			Handle: p.index},
	}
}

// index tells another server which state is current.
func (p *NodeProtocol) index(w http.ResponseWriter, r *route.Request) error {
	// Taken before the check: an index that a leader had is never too new.
	index := p.cfg.Store.Index()
	if a := p.cfg.Assignments; a != nil && a.verify != nil {
		if err := a.verify(r.Context()); err != nil {
			return structs.ErrNoLeader
		}
	}
	return writeCBOR(w, index)
}

// own makes sure that a session's node speaks for itself, with the secret it registered with. The node is nil when
// it is unknown.
func (p *NodeProtocol) own(r *route.Request, nodeID, secretID string) (*structs.Node, error) {
	if nodeID == "" || secretID == "" {
		return nil, structs.Errorf(structs.CodeInvalid, "node ID and secret ID are required")
	}
	if r.Caller.NodeID != nodeID {
		return nil, structs.Errorf(structs.CodePermission, "session belongs to another node")
	}
	node := p.cfg.Store.Node(nil, nodeID)
	if node != nil && !sameSecret(node.SecretID, secretID) {
		return nil, structs.Errorf(structs.CodePermission, "node secret ID does not match")
	}
	return node, nil
}

func (p *NodeProtocol) register(w http.ResponseWriter, r *route.Request) error {
	var req structs.NodeRegisterRequest
	if err := readCBOR(r, &req); err != nil {
		return err
	}
	if req.Node == nil {
		return structs.Errorf(structs.CodeInvalid, "node is required")
	}
	node := req.Node
	if node.Name == "" {
		return structs.Errorf(structs.CodeInvalid, "node name is required")
	}
	release, err := p.claim(r.Context(), node.ID)
	if err != nil {
		return err
	}
	defer release()
	known, err := p.own(r, node.ID, node.SecretID)
	if err != nil {
		return err
	}
	node.Canonicalize()
	node.ComputeClass()
	if known == nil {
		node.Status = structs.NodeStatusInit
	}
	if known == nil || !sameNode(known, node) {
		req := &fsm.NodeRegister{Node: node, Now: p.cfg.Now().UnixNano()}
		if known != nil && known.Ready() {
			req.Evals = p.systemEvals(known, node, req.Now)
		}
		if _, _, err := p.cfg.Raft.Apply(r.Context(), fsm.KindNodeRegister, req); err != nil {
			return fmt.Errorf("register node: %w", err)
		}
	}
	if known != nil && known.Maintenance != nil && known.Maintenance.UntilBack {
		if err := p.back(r, known); err != nil {
			return fmt.Errorf("end maintenance: %w", err)
		}
	}
	if err := p.returned(r.Context(), known, req.Agent); err != nil {
		return err
	}
	return p.beat(r.Context(), w, node.ID, false)
}

// systemEvals makes the evaluations of system jobs for a ready node that is not what it was: they may fit it now, or no
// more. A node that is not ready gets them when it becomes so.
func (p *NodeProtocol) systemEvals(was, is *structs.Node, now int64) []*structs.Evaluation {
	var out []*structs.Evaluation
	for _, job := range p.cfg.Store.Snapshot().SystemJobs(was, is) {
		out = append(out, &structs.Evaluation{
			ID: uuid.New(), Namespace: structs.Val(job.Namespace), JobID: structs.Val(job.ID),
			Type: structs.Val(job.Type), Priority: structs.Val(job.Priority), NodeID: is.ID,
			TriggeredBy: structs.EvalTriggerNodeUpdate, Status: structs.EvalStatusPending, CreateTime: now, ModifyTime: now,
		})
	}
	return out
}

// claim makes registrations of one node come one after the other, so that the first one pins the secret.
func (p *NodeProtocol) claim(ctx context.Context, nodeID string) (release func(), err error) {
	for {
		p.mu.Lock()
		busy := p.registering[nodeID]
		if busy == nil {
			mine := make(chan struct{})
			p.registering[nodeID] = mine
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				delete(p.registering, nodeID)
				p.mu.Unlock()
				close(mine)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("register node: %w", context.Cause(ctx))
		}
	}
}

// sameNode says that a registration tells nothing new, so that a reconnecting node costs no raft entry.
func sameNode(known, node *structs.Node) bool {
	n := *node
	n.Status, n.StatusDescription, n.StatusUpdatedAt = known.Status, known.StatusDescription, known.StatusUpdatedAt
	n.Drain, n.DrainStrategy, n.LastDrain = known.Drain, known.DrainStrategy, known.LastDrain
	n.SchedulingEligibility, n.Events = known.SchedulingEligibility, known.Events
	n.Maintenance, n.Leaving = known.Maintenance, known.Leaving
	n.CreateIndex, n.ModifyIndex = known.CreateIndex, known.ModifyIndex
	return reflect.DeepEqual(&n, known)
}

func (p *NodeProtocol) heartbeat(w http.ResponseWriter, r *route.Request) error {
	var req structs.NodeHeartbeatRequest
	if err := readCBOR(r, &req); err != nil {
		return err
	}
	node, err := p.own(r, req.NodeID, req.SecretID)
	if err != nil {
		return err
	}
	if node == nil {
		return writeCBOR(w, &structs.NodeHeartbeatResponse{Servers: p.cfg.Servers()})
	}
	if err := p.returned(r.Context(), node, req.Agent); err != nil {
		return err
	}
	return p.beat(r.Context(), w, req.NodeID, req.FreshReport && req.Status != structs.NodeStatusInit)
}

// beat renews the node's time and answers with what the node needs to go on.
func (p *NodeProtocol) beat(ctx context.Context, w http.ResponseWriter, nodeID string, fresh bool) error {
	ttl, err := p.cfg.Heartbeats.Beat(ctx, nodeID, fresh)
	if errors.Is(err, structs.ErrNodeNotFound) {
		return writeCBOR(w, &structs.NodeHeartbeatResponse{Servers: p.cfg.Servers()})
	}
	if err != nil {
		return err
	}
	res := &structs.NodeHeartbeatResponse{
		TTL: ttl, Index: p.cfg.Store.Index(), Servers: p.cfg.Servers(), Known: true,
	}
	if node := p.settled(ctx, nodeID, fresh); node != nil {
		res.NodeIndex, res.Status = node.ModifyIndex, node.Status
	}
	return writeCBOR(w, res)
}

// settled gives the node as the state has it. A heartbeat that makes it ready waits for that, so that the node learns from
// the answer that it is, but not for long: the time until its next heartbeat runs.
func (p *NodeProtocol) settled(ctx context.Context, nodeID string, fresh bool) *structs.Node {
	settled := func(node *structs.Node) bool {
		return node == nil || !fresh || node.Status == structs.NodeStatusReady
	}
	if node := p.cfg.Store.Node(nil, nodeID); settled(node) {
		return node // nearly always: no more than this
	}
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		ws := memdb.NewWatchSet()
		node := p.cfg.Store.Node(ws, nodeID)
		if settled(node) || ws.WatchCtx(ctx) != nil {
			return node
		}
	}
}

func (p *NodeProtocol) assignments(w http.ResponseWriter, r *route.Request) error {
	var req structs.AssignmentsRequest
	if err := readCBOR(r, &req); err != nil {
		return err
	}
	node, err := p.own(r, req.NodeID, req.SecretID)
	if err != nil {
		return err
	}
	if node == nil && p.cfg.Forwarder != nil {
		// This server may not have heard of a node that has just registered with the leader.
		if err := p.cfg.Assignments.verify(r.Context()); err != nil {
			return structs.ErrNoLeader
		}
		if node, err = p.own(r, req.NodeID, req.SecretID); err != nil {
			return err
		}
	}
	if node == nil {
		return structs.ErrNodeNotFound
	}
	return p.cfg.Assignments.serve(r.Context(), w, req)
}

func (p *NodeProtocol) allocs(w http.ResponseWriter, r *route.Request) error {
	var req structs.NodeAllocsUpdateRequest
	if err := readCBOR(r, &req); err != nil {
		return err
	}
	node, err := p.own(r, req.NodeID, req.SecretID)
	if err != nil {
		return err
	}
	if node == nil {
		return structs.ErrNodeNotFound
	}
	kept := ownObservations(p.cfg.Store, req.NodeID, req.Observations, func(id string) {
		p.log.Debug("dropped a report of an allocation that is not the node's", "node_id", req.NodeID, "alloc_id", id)
	})
	if err := p.observer.report(r.Context(), kept); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// ownObservations keeps those of a node's own allocations. Of allocations that are gone the store takes no note; those
// of other nodes are none of this node's business.
func ownObservations(store *state.Store, nodeID string, observations []*structs.AllocObservation, dropped func(allocID string),
) []*structs.AllocObservation {
	kept := make([]*structs.AllocObservation, 0, len(observations))
	for _, o := range observations {
		if o == nil {
			continue
		}
		if alloc := store.Alloc(nil, o.AllocID); alloc == nil || alloc.NodeID != nodeID {
			if dropped != nil {
				dropped(o.AllocID)
			}
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

func readCBOR(r *route.Request, v any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	if err := codec.Unmarshal(data, v); err != nil {
		return structs.Errorf(structs.CodeInvalid, "read request: %w", err)
	}
	return nil
}

func writeCBOR(w http.ResponseWriter, v any) error {
	data, err := codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", codec.ContentType)
	_, _ = w.Write(data) // a sender that has gone needs no answer
	return nil
}
