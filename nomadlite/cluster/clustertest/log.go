// Package clustertest gives tests a log without raft: commands are encoded, decoded and applied by the real FSM to a real
// store, in one process and at once. Tests of the leader's rooms use it.
package clustertest

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Log applies commands in the order of the calls.
type Log struct {
	Store *state.Store

	mu    sync.Mutex
	fsm   *fsm.FSM
	index uint64
	down  bool
}

// New makes a log with an empty store.
func New() *Log {
	store := state.New(state.Config{})
	return &Log{Store: store, fsm: fsm.New(store, nil), index: 10}
}

// SetLeader makes the log refuse (false) or take commands.
func (l *Log) SetLeader(leader bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = !leader
}

// Apply applies one command.
func (l *Log) Apply(_ context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	data, err := fsm.Encode(kind, req)
	if err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, 0, structs.ErrNoLeader
	}
	l.index++
	resp := l.fsm.Apply(&raft.Log{Index: l.index, Data: data})
	if err, ok := resp.(error); ok {
		return nil, l.index, err
	}
	return resp, l.index, nil
}

// Propose applies the command at once; wait tells its outcome.
func (l *Log) Propose(kind fsm.Kind, req any) func(ctx context.Context) (any, uint64, error) {
	resp, index, err := l.Apply(context.Background(), kind, req)
	return func(context.Context) (any, uint64, error) { return resp, index, err }
}

// VerifyLeader says whether the log takes commands.
func (l *Log) VerifyLeader(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return structs.ErrNoLeader
	}
	return nil
}
