package session

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// servicesPerEntry bounds one raft entry of registrations.
const servicesPerEntry = 4096

// registrar folds what many nodes offer into few raft entries: the first goes out at once, and what arrives while one is
// being written goes out together in the next. What the registry holds already costs no entry.
type registrar struct {
	raft  Applier
	state *state.Store

	mu       sync.Mutex
	waiting  []*offer
	flushing bool
	flushes  sync.WaitGroup
}

// offer is one node's request.
type offer struct {
	req  *structs.NodeServicesRequest
	err  error
	done chan struct{}
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
	if err := p.registrar.submit(r.Context(), &req); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// submit writes one request and waits until it is committed.
func (g *registrar) submit(ctx context.Context, req *structs.NodeServicesRequest) error {
	o := &offer{req: req, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, o)
	if !g.flushing {
		g.flushing = true
		g.flushes.Add(1)
		go g.flush()
	}
	g.mu.Unlock()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("register services: %w", context.Cause(ctx))
	}
}

// flush writes entries until nothing waits.
func (g *registrar) flush() {
	defer g.flushes.Done()
	for {
		batch := g.take()
		if batch == nil {
			return
		}
		err := g.write(fold(batch, g.state))
		for _, o := range batch {
			o.err = err
			close(o.done)
		}
	}
}

// take gives the next requests, or ends the flush.
func (g *registrar) take() []*offer {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.waiting) {
		more := len(g.waiting[n].req.Upsert) + len(g.waiting[n].req.Delete)
		if n > 0 && size+more > servicesPerEntry {
			break
		}
		size += more
		n++
	}
	if n == 0 {
		g.flushing, g.waiting = false, nil
		return nil
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return batch
}

// write commits what is to go before what is to come: leaving discovery is what others wait for.
func (g *registrar) write(gone []fsm.ServiceRef, offered []*structs.ServiceRegistration) error {
	ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
	defer cancel()
	if len(gone) > 0 {
		if _, _, err := g.raft.Apply(ctx, fsm.KindServiceDelete, &fsm.ServiceDelete{Services: gone}); err != nil {
			return fmt.Errorf("remove services: %w", err)
		}
	}
	if len(offered) > 0 {
		if _, _, err := g.raft.Apply(ctx, fsm.KindServiceUpsert, &fsm.ServiceUpsert{Services: offered}); err != nil {
			return fmt.Errorf("store services: %w", err)
		}
	}
	return nil
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
func fold(batch []*offer, store *state.Store) (gone []fsm.ServiceRef, offered []*structs.ServiceRegistration) {
	nodes := map[string]*changes{}
	var order []string
	for _, o := range batch {
		id := o.req.NodeID
		c := nodes[id]
		if c == nil {
			order = append(order, id)
		}
		if c == nil || o.req.Complete {
			c = &changes{complete: o.req.Complete, wanted: map[structs.ServiceKey]*structs.ServiceRegistration{}}
			nodes[id] = c
		}
		for _, key := range o.req.Delete {
			c.set(key, nil)
		}
		for _, s := range o.req.Upsert {
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
