package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// leavePath is where a server tells the leader that it goes for good.
const leavePath = "/v1/internal/cluster/leave"

// leaveLimit bounds how long a server tries to leave before it stops as it is.
const leaveLimit = 15 * time.Second

// leftKept is how long a server that has left is shown.
const leftKept = 24 * time.Hour

// Asker sends requests to the leader and waits a while for there to be one.
type Asker interface {
	Do(req *http.Request) (*http.Response, error)
}

// Leave takes this server out of its cluster: the leadership goes to another one, which removes this one from raft's
// configuration, and all are told. One that is alone only stops, and so does one without which there is no majority; left
// says whether the others go on without this server. The servers must still run.
func (m *Membership) Leave(ctx context.Context, leader Asker) (left bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	voters := m.cfg.Raft.Voters()
	if others, is := without(voters, m.cfg.Self.ID); !is || len(others) == 0 {
		return false, nil
	}
	if m.cfg.Raft.IsLeader() {
		if err := m.dispensable(m.cfg.Self.ID, voters); err != nil {
			return false, err
		}
		if err := m.cfg.Raft.TransferLeadership(ctx); err != nil {
			return false, fmt.Errorf("hand over the leadership: %w", err)
		}
	}
	self := m.introduction().From
	self.Left = true
	body, err := json.Marshal(self)
	if err != nil {
		return false, fmt.Errorf("leave cluster: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, leavePath, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("leave cluster: %w", err)
	}
	res, err := leader.Do(req)
	if err != nil {
		return false, fmt.Errorf("leave cluster: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return false, fmt.Errorf("leave cluster: %w", route.ReadError(res))
	}
	m.mu.Lock()
	m.roster.Leave()
	m.mu.Unlock()
	m.visitAll(ctx)
	return true, nil
}

// without gives the voters but for one, and whether that is among them.
func without(voters []Peer, id string) (others []Peer, is bool) {
	for _, v := range voters {
		if v.ID == id {
			is = true
		} else {
			others = append(others, v)
		}
	}
	return others, is
}

// dispensable says in an error that the other voters would have no majority among them now.
func (m *Membership) dispensable(id string, voters []Peer) error {
	others, _ := without(voters, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	alive := 0
	for _, v := range others {
		if m.roster.Status(v.ID, time.Now()) == StatusAlive {
			alive++
		}
	}
	if alive < len(others)/2+1 {
		return structs.Errorf(structs.CodeUnavailable,
			"server stays a member: only %d of the %d others answer, which is no majority", alive, len(others))
	}
	return nil
}

// serveLeave removes a server that asks for it from raft's configuration; the leader answers.
func (m *Membership) serveLeave(w http.ResponseWriter, r *route.Request) error {
	var member Member
	if err := json.NewDecoder(r.Body).Decode(&member); err != nil {
		return structs.Errorf(structs.CodeInvalid, "read introduction: %w", err)
	}
	if member.ID == "" || member.ID == m.cfg.Self.ID {
		return structs.Errorf(structs.CodeInvalid, "this server cannot be removed by itself")
	}
	if err := m.remove(r.Context(), member); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove takes a server out of the roster first, so that it is not made a voter again.
func (m *Membership) remove(ctx context.Context, member Member) error {
	select {
	case m.changing <- struct{}{}:
		defer func() { <-m.changing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	voters := m.cfg.Raft.Voters()
	if _, is := without(voters, member.ID); !is {
		return nil
	}
	if err := m.dispensable(member.ID, voters); err != nil {
		return err
	}
	mark := func(left bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.roster.Mark(member, left, time.Now())
		m.announceLocked()
	}
	mark(true)
	if err := m.cfg.Raft.RemoveServer(ctx, member.ID); err != nil {
		if !errors.Is(err, structs.ErrNoLeader) {
			mark(false)
		}
		return fmt.Errorf("remove server: %w", err)
	}
	m.cfg.Logger.Info("server has left the cluster", "name", member.Name, "addr", member.Addr, "id", member.ID)
	return nil
}
