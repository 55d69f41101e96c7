package session

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// servicesPerEntry bounds one raft entry of registrations.
const servicesPerEntry = 4096

// registrar writes what nodes offer. What the registry holds already costs no entry.
type registrar struct {
	groupCommit[*structs.NodeServicesRequest]
	raft  Applier
	state *state.Store
}

func newRegistrar(raft Applier, store *state.Store) *registrar {
	g := &registrar{raft: raft, state: store}
	g.limit = servicesPerEntry
	g.rows = func(req *structs.NodeServicesRequest) int { return len(req.Upsert) + len(req.Delete) }
	g.write = g.commit
	return g
}

// services changes what a node offers. Whether an allocation is the node's is decided where the entry is applied, since
// this server's state may be behind the log for a moment after an election.
func (p *NodeProtocol) services(w http.ResponseWriter, r *route.Request) error {
	var req structs.NodeServicesRequest
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
	for _, s := range req.Upsert {
		if s == nil || !s.OwnID() || s.ServiceName == "" || s.Namespace == "" || s.Port < 0 || s.Port > 65535 ||
			strings.ContainsRune(s.ID+s.ServiceName+s.Namespace, 0) {
			return structs.Errorf(structs.CodeInvalid, "a registration is not one of an allocation's services")
		}
		s.NodeID = req.NodeID
	}
	if _, err := p.registrar.submit(r.Context(), &req); err != nil {
		return fmt.Errorf("register services: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// commit writes what is to go before what is to come: leaving discovery is what others wait for.
func (g *registrar) commit(ctx context.Context, batch []*structs.NodeServicesRequest) (index uint64, err error) {
	gone, offered := fold(batch, g.state)
	if len(gone) > 0 {
		if _, index, err = g.raft.Apply(ctx, fsm.KindServiceDelete, &fsm.ServiceDelete{Services: gone}); err != nil {
			return 0, fmt.Errorf("remove services: %w", err)
		}
	}
	if len(offered) > 0 {
		if _, index, err = g.raft.Apply(ctx, fsm.KindServiceUpsert, &fsm.ServiceUpsert{Services: offered}); err != nil {
			return 0, fmt.Errorf("store services: %w", err)
		}
	}
	return index, nil
}

// changes are what one node wants, by id; nil is to be removed.
type changes struct {
	complete bool
	order    []structs.ServiceKey
	wanted   map[structs.ServiceKey]*structs.ServiceRegistration
}

func (c *changes) set(key structs.ServiceKey, s *structs.ServiceRegistration) {
	if _, seen := c.wanted[key]; !seen {
		c.order = append(c.order, key)
	}
	c.wanted[key] = s
}

// fold makes of requests, in the order in which they came, what has to be written. The last word of a node about a
// service counts, and what is registered so already is left out.
func fold(batch []*structs.NodeServicesRequest, store *state.Store) (gone []fsm.ServiceRef, offered []*structs.ServiceRegistration) {
	nodes := map[string]*changes{}
	var order []string
	for _, req := range batch {
		id := req.NodeID
		c := nodes[id]
		if c == nil {
			order = append(order, id)
		}
		if c == nil || req.Complete {
			c = &changes{complete: req.Complete, wanted: map[structs.ServiceKey]*structs.ServiceRegistration{}}
			nodes[id] = c
		}
		for _, key := range req.Delete {
			c.set(key, nil)
		}
		for _, s := range req.Upsert {
			c.set(structs.ServiceKey{Namespace: s.Namespace, ID: s.ID}, s)
		}
	}
	snap := store.Snapshot()
	for _, nodeID := range order {
		c := nodes[nodeID]
		for _, key := range c.order {
			have, want := snap.Service(nil, key.Namespace, key.ID), c.wanted[key]
			switch {
			case want == nil && have != nil && have.NodeID == nodeID:
				gone = append(gone, fsm.ServiceRef{Namespace: key.Namespace, ID: key.ID, NodeID: nodeID})
			case want != nil && (have == nil || !sameOffer(have, want)):
				offered = append(offered, want)
			}
		}
		if !c.complete {
			continue
		}
		for have := range snap.ServicesByNode(nodeID) {
			if _, told := c.wanted[structs.ServiceKey{Namespace: have.Namespace, ID: have.ID}]; !told {
				gone = append(gone, fsm.ServiceRef{Namespace: have.Namespace, ID: have.ID, NodeID: nodeID})
			}
		}
	}
	return gone, offered
}

// sameOffer compares what a node may say of a service.
func sameOffer(have, want *structs.ServiceRegistration) bool {
	return have.ServiceName == want.ServiceName && have.NodeID == want.NodeID && have.AllocID == want.AllocID &&
		have.Address == want.Address && have.Port == want.Port && slices.Equal(have.Tags, want.Tags)
}
