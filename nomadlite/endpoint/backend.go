package endpoint

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/nomadlite/worker"
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
	// Forget drops a node's timer (deregistered).
	Forget(nodeID string)
	// Reconsider looks again at the maintenance which a node has in the state.
	Reconsider(nodeID string)
}

// Keyring signs and shows keys.
type Keyring interface {
	// JWKS is the public keys as a JSON Web Key Set.
	JWKS() ([]byte, error)
	Rotate(ctx context.Context, full bool) (*structs.RootKeyMeta, error)
	Remove(ctx context.Context, keyID string) error
}

// Broker is the evaluation broker as the internal routes for other servers' workers need it, and its figures.
type Broker interface {
	Stats() map[string]any
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
	Snapshots  Snapshots
	Broker     Broker
	Limits     Limits
	Servers    func() []string // host:port of each server's 4647, for nodes

	// Parse turns a jobspec's text into a job; nil means ParseJobspec. A fault of the text carries structs.CodeInvalid.
	Parse func(req *structs.JobsParseRequest) (*structs.Job, error)
	// LocalNode gives the id of the client in the same agent; nil, or an empty id: there is none.
	LocalNode func() string
	// Workers are the scheduling workers of this server; nil when it has none.
	Workers Workers
	// Applied counts the raft entries of each command that this process has applied; nil: not told.
	Applied func() map[string]uint64
	// Stopping is closed when this agent begins to end: blocking queries then answer with what there is. Nil: never.
	Stopping <-chan struct{}
	// Now is the clock behind every time that is stored; nil means time.Now.
	Now func() time.Time

	meter   meter
	started time.Time // when Routes was called
}

// Workers are the scheduling workers of a server.
type Workers interface {
	Workers() []worker.Status
	// Setting is for which types of evaluations they are, and how many.
	Setting() (types []string, count int)
	Set(types []string, count int)
}

func (b *Backend) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

// Limits bounds requests. Zero values mean the defaults.
type Limits struct {
	MaxBodyBytes      int64 // default 32 MiB for jobs
	JobMaxPriority    int   // default 100
	JobMaxCount       int   // of allocations that one job may ask for; default 50000
	JobTrackedVersion int
	Search            SearchLimits
	JobMaxSourceSize  int // of a job's source, in bytes, that is kept with it; default 1000000
}
