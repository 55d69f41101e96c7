package fsm

import (
	"fmt"
	"sync"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/nomadlite/state"
)

// command is the one registered value of a command.
type command struct {
	kind Kind
	name string
	// decode gives a *T of the request type.
	decode func(data []byte) (any, error)
	// encode fails when req is not a T or *T.
	encode func(req any) ([]byte, error)
	apply  func(tx *state.Txn, req any) (any, error)
}

func newCommand[T any](kind Kind, name string, apply func(*state.Txn, *T) (any, error)) command {
	return command{
		kind: kind,
		name: name,
		decode: func(data []byte) (any, error) {
			req := new(T)
			if err := codec.Unmarshal(data, req); err != nil {
				return nil, fmt.Errorf("decode command %s: %w", name, err)
			}
			return req, nil
		},
		encode: func(req any) ([]byte, error) {
			switch req.(type) {
			case T, *T:
			default:
				return nil, fmt.Errorf("encode command %s: the request is a %T", name, req)
			}
			data, err := codec.Marshal(req)
			if err != nil {
				return nil, fmt.Errorf("encode command %s: %w", name, err)
			}
			return data, nil
		},
		apply: func(tx *state.Txn, req any) (any, error) { return apply(tx, req.(*T)) },
	}
}

// commands lists all commands.
func commands() []command {
	return []command{
		newCommand(KindJobRegister, "job-register", applyJobRegister),
		newCommand(KindJobDeregister, "job-deregister", applyJobDeregister),
		newCommand(KindEvalUpdate, "eval-update", applyEvalUpdate),
		newCommand(KindEvalDelete, "eval-delete", applyEvalDelete),
		newCommand(KindPlanApply, "plan-apply", applyPlanApply),
		newCommand(KindNodeRegister, "node-register", applyNodeRegister),
		newCommand(KindNodeStatus, "node-status", applyNodeStatus),
		newCommand(KindNodeDeregister, "node-deregister", applyNodeDeregister),
		newCommand(KindNodeEligibility, "node-eligibility", applyNodeEligibility),
		newCommand(KindNodeDrain, "node-drain", applyNodeDrain),
		newCommand(KindAllocObserve, "alloc-observe", applyAllocObserve),
		newCommand(KindAllocTransition, "alloc-transition", applyAllocTransition),
		newCommand(KindReap, "reap", applyReap),
		newCommand(KindKeyringUpsert, "keyring-upsert", applyKeyringUpsert),
		newCommand(KindKeyringDelete, "keyring-delete", applyKeyringDelete),
		newCommand(KindNodePoolUpsert, "node-pool-upsert", applyNodePoolUpsert),
		newCommand(KindNodePoolDelete, "node-pool-delete", applyNodePoolDelete),
		newCommand(KindNamespaceUpsert, "namespace-upsert", applyNamespaceUpsert),
		newCommand(KindNamespaceDelete, "namespace-delete", applyNamespaceDelete),
		newCommand(KindSchedulerConfig, "scheduler-config", applySchedulerConfig),
		newCommand(KindClusterMeta, "cluster-meta", applyClusterMeta),
		newCommand(KindJobStability, "job-stability", applyJobStability),
		newCommand(KindJobVersionTag, "job-version-tag", applyJobVersionTag),
		newCommand(KindReconcileSummaries, "reconcile-summaries", applyReconcileSummaries),
		newCommand(KindNodeEvents, "node-events", applyNodeEvents),
		newCommand(KindDeploymentStatus, "deployment-status", applyDeploymentStatus),
		newCommand(KindServiceUpsert, "service-upsert", applyServiceUpsert),
		newCommand(KindServiceDelete, "service-delete", applyServiceDelete),
		newCommand(KindJobScale, "job-scale", applyJobScale),
		newCommand(KindDeploymentPromote, "deployment-promote", applyDeploymentPromote),
		newCommand(KindDeploymentHealth, "deployment-health", applyDeploymentHealth),
		newCommand(KindNodeMaintenance, "node-maintenance", applyNodeMaintenance),
		newCommand(KindPeriodicLaunch, "periodic-launch", applyPeriodicLaunch),
		newCommand(KindJobDispatch, "job-dispatch", applyJobDispatch),
		newCommand(KindNodeLeave, "node-leave", applyNodeLeave),
	}
}

// byKind indexes the commands by number; a number or name that is there twice is refused.
func byKind(list []command) (*[256]*command, error) {
	var out [256]*command
	names := make(map[string]bool)
	for i := range list {
		c := &list[i]
		if c.kind == 0 || out[c.kind] != nil || c.name == "" || names[c.name] {
			return nil, fmt.Errorf("register command %d %q: the number or the name is zero or taken", c.kind, c.name)
		}
		out[c.kind], names[c.name] = c, true
	}
	return &out, nil
}

// registered is the checked list; a fault in it is one of the program.
var registered = sync.OnceValue(func() *[256]*command {
	out, err := byKind(commands())
	if err != nil {
		panic(err)
	}
	return out
})

// Encode makes the bytes of a raft log entry. req is the request type of kind's name, or a pointer to one.
func Encode(kind Kind, req any) ([]byte, error) {
	c := registered()[kind]
	if c == nil {
		return nil, fmt.Errorf("encode command %d: there is no such command", kind)
	}
	data, err := c.encode(req)
	if err != nil {
		return nil, err
	}
	return append([]byte{byte(kind)}, data...), nil
}

// String is the command's name.
func (k Kind) String() string {
	if c := registered()[k]; c != nil {
		return c.name
	}
	return fmt.Sprintf("unknown command %d", uint8(k))
}
