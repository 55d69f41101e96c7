// Package endpoint has the HTTP handlers of a server, one file a noun: it authorises, validates, makes one raft entry
// for what belongs together, and reads from snapshots. It holds no state of its own.
package endpoint

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Raft is how handlers write and read consistently.
type Raft interface {
	// Apply commits one command and waits until this server's state holds it. err is what the command itself
	// answered (a CodedError), or that this server is not the leader.
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
	// VerifyLeader makes sure that this server still leads (consistent reads).
	VerifyLeader(ctx context.Context) error
	IsLeader() bool
	// LastContact is the time since this server heard from the leader, 0 on the leader.
	LastContact() time.Duration
	// LeaderAddr is the leader's host:port of 4647, empty when there is none.
	LeaderAddr() string
	// Peers are host:port of all raft peers.
	Peers() []string
}

// Cluster is the membership which agent and status handlers show.
type Cluster interface {
	Members() []*structs.AgentMember
	Self() *structs.AgentMember
	// Stats are the blocks of agent/self (nomad, raft, runtime ...).
	Stats() map[string]map[string]string
	// ForceGC runs core garbage collection at once, thresholds ignored.
	ForceGC(ctx context.Context) error
}

// Heartbeats is the leader's duty about nodes.
type Heartbeats interface {
	// Beat renews a node's TTL and says when the next heartbeat is due.
	Beat(nodeID string, fresh bool) (ttl time.Duration, err error)
	// Forget drops a node's timer (deregistered).
	Forget(nodeID string)
}

// Keyring signs and shows keys.
type Keyring interface {
	// JWKS is the public keys as a JSON Web Key Set.
	JWKS() ([]byte, error)
	Keys() []*structs.RootKeyMeta
	Rotate(ctx context.Context, full bool) (*structs.RootKeyMeta, error)
	Remove(ctx context.Context, keyID string) error
}

// Broker is the evaluation broker as the internal routes for other servers' workers need it, and its figures.
type Broker interface {
	Stats() map[string]any
}

// Assignments parks a node's long poll and answers it when something changed; see the node protocol in structs.
type Assignments interface {
	ServeHTTP(w http.ResponseWriter, r *http.Request)
}

// Backend is what a server gives its handlers.
type Backend struct {
	Logger     hclog.Logger
	Region     string
	Datacenter string
	Name       string
	Store      *state.Store
	Raft       Raft
	Cluster    Cluster
	Heartbeats Heartbeats
	Keyring    Keyring
	Broker     Broker
	Limits     Limits
	Servers    func() []string // host:port of each server's 4647, for nodes
}

// Limits bounds requests. Zero values mean the defaults.
type Limits struct {
	MaxBodyBytes      int64 // default 32 MiB for jobs
	JobMaxPriority    int
	JobMaxCount       int
	JobTrackedVersion int
}
