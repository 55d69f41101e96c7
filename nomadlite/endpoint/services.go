package endpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func serviceRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/services", b.handler(b.listServices)),
		read("/v1/service/{name}", b.handler(b.readService)),
		remove("/v1/service/{name}/{service_id}", b.handler(b.deleteService)),
		read("/v1/job/{job_id}/services", b.handler(b.listJobServices)),
		read("/v1/allocation/{alloc_id}/services", b.handler(b.listAllocationServices)),
	}
}

// servicesIndex is the index of all answers about services. It is never 0, so that it can be waited for.
func servicesIndex(snap *state.Snapshot) uint64 { return max(1, snap.TableIndex(state.TableServices)) }

func (b *Backend) listServices(w http.ResponseWriter, r *route.Request, q *query) error {
	var list []*structs.ServiceRegistrationListStub
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		list = snap.ServiceNames(ws, q.namespace)
		return servicesIndex(snap)
	})
	if err != nil {
		return err
	}
	return answer(w, q, list)
}

func (b *Backend) readService(w http.ResponseWriter, r *route.Request, q *query) error {
	number, key, err := q.choose()
	if err != nil {
		return err
	}
	name := r.Param("name")
	var rows iter.Seq[*structs.ServiceRegistration]
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		if q.namespace == structs.AllNamespaces {
			rows = named(snap.Services(ws, q.namespace), name)
		} else {
			rows = snap.ServicesByName(ws, q.namespace, name)
		}
		return servicesIndex(snap)
	})
	if err != nil {
		return err
	}
	list := serviceList(rows)
	if number == 0 {
		return answerList(w, q, list)
	}
	selected, err := list.selected(q)
	if err != nil {
		return err
	}
	var all []*structs.ServiceRegistration
	for row, err := range selected {
		if err != nil {
			return err
		}
		all = append(all, row)
	}
	chosen := make([]any, 0, number)
	for _, row := range choose(all, number, key) {
		chosen = append(chosen, list.show(row))
	}
	return answer(w, q, chosen)
}

func named(rows iter.Seq[*structs.ServiceRegistration], name string) iter.Seq[*structs.ServiceRegistration] {
	return func(yield func(*structs.ServiceRegistration) bool) {
		for row := range rows {
			if row.ServiceName == name && !yield(row) {
				return
			}
		}
	}
}

// serviceList shows registrations in the order in which they come, which is by id.
func serviceList(rows iter.Seq[*structs.ServiceRegistration]) list[*structs.ServiceRegistration] {
	return list[*structs.ServiceRegistration]{
		rows:  rows,
		token: func(s *structs.ServiceRegistration) string { return s.Namespace + "\x00" + s.ID },
		show: func(s *structs.ServiceRegistration) any {
			if s.Tags == nil {
				tagged := *s
				tagged.Tags = []string{}
				return &tagged
			}
			return s
		},
	}
}

// maxChoose bounds how many instances may be chosen at once.
const maxChoose = 1000

// choose reads the parameter of that name: how many instances, and the key for which they are chosen. 0 is all.
func (q *query) choose() (number int, key string, err error) {
	text := q.values.Get("choose")
	if text == "" {
		return 0, "", nil
	}
	count, key, ok := strings.Cut(text, "|")
	number, err = strconv.Atoi(count)
	if !ok || err != nil || number < 1 || number > maxChoose {
		return 0, "", structs.Errorf(structs.CodeInvalid,
			"invalid value %q of parameter choose: expected a number from 1 to %d and a key, such as 2|web", text, maxChoose)
	}
	return number, key, nil
}

// choose picks up to n instances by rendezvous hashing: each has a score for the key, and those with the highest are
// it. So one key always gets the same instances, and one that comes or goes moves only the keys that are its own.
func choose(list []*structs.ServiceRegistration, n int, key string) []*structs.ServiceRegistration {
	type scored struct {
		score uint64
		row   *structs.ServiceRegistration
	}
	scores := make([]scored, len(list))
	for i, row := range list {
		sum := sha256.Sum256([]byte(key + "\x00" + row.ID))
		scores[i] = scored{binary.BigEndian.Uint64(sum[:8]), row}
	}
	slices.SortFunc(scores, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.row.ID, b.row.ID))
	})
	var out []*structs.ServiceRegistration
	for _, s := range scores[:min(n, len(scores))] {
		out = append(out, s.row)
	}
	return out
}

func (b *Backend) deleteService(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	id := r.Param("service_id")
	if s := b.Store.Service(nil, ns, id); s == nil || s.ServiceName != r.Param("name") {
		return notFound("service registration")
	}
	resp, index, err := b.apply(r.Context(), fsm.KindServiceDelete,
		&fsm.ServiceDelete{Services: []fsm.ServiceRef{{Namespace: ns, ID: id}}})
	if err != nil {
		return err
	}
	if result, ok := resp.(fsm.ServiceDeleteResult); ok && result.Deleted == 0 {
		return notFound("service registration")
	}
	return answerWrite(w, q, index, nil)
}

func (b *Backend) listJobServices(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	id := r.Param("job_id")
	return b.servicesOf(w, r, q, "job", func(ws memdb.WatchSet, snap *state.Snapshot) (bool, iter.Seq[*structs.ServiceRegistration]) {
		return snap.Job(ws, ns, id) != nil, snap.ServicesByJob(ws, ns, id)
	})
}

func (b *Backend) listAllocationServices(w http.ResponseWriter, r *route.Request, q *query) error {
	id := r.Param("alloc_id")
	return b.servicesOf(w, r, q, "alloc", func(ws memdb.WatchSet, snap *state.Snapshot) (bool, iter.Seq[*structs.ServiceRegistration]) {
		return snap.Alloc(ws, id) != nil, snap.ServicesByAlloc(ws, id)
	})
}

// servicesOf answers with the registrations of one object, or that the object is not there.
func (b *Backend) servicesOf(w http.ResponseWriter, r *route.Request, q *query, what string,
	look func(memdb.WatchSet, *state.Snapshot) (bool, iter.Seq[*structs.ServiceRegistration])) error {
	var found bool
	var rows iter.Seq[*structs.ServiceRegistration]
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		found, rows = look(ws, snap)
		return servicesIndex(snap)
	})
	if err != nil {
		return err
	}
	if !found {
		return notFound(what)
	}
	return answerList(w, q, serviceList(rows))
}
