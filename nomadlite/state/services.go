package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// Indexes of the table of services beside the id.
const (
	indexName  = "name"
	indexAlloc = "alloc"
)

// serviceRow is a registration. Hidden says that no one is told of it at present: its node cannot be heard, or is away
// for a while. It is not removed then, because the node will not register it again when it is back.
type serviceRow struct {
	*structs.ServiceRegistration
	Hidden bool
}

func servicesTable() *table {
	t := plainTable(TableServices, func(r *serviceRow) string { return serviceRowKey(r.Namespace, r.ID) },
		manyIndex(indexName, func(r *serviceRow) (string, bool) { return joinKey(r.Namespace, r.ServiceName, r.ID), true }),
		manyIndex(indexAlloc, func(r *serviceRow) (string, bool) { return joinKey(r.AllocID, r.ID), true }),
		manyIndex(indexJob, func(r *serviceRow) (string, bool) { return joinKey(r.Namespace, r.JobID, r.ID), true }))
	t.item = func(row any) any {
		if r := row.(*serviceRow); !r.Hidden {
			return r.ServiceRegistration
		}
		return nil
	}
	return t
}

func serviceRowKey(namespace, id string) string { return joinKey(namespace, id) }

// Services gives all registrations of a namespace (structs.AllNamespaces: of all), by namespace, name and id.
func (r Reader) Services(ws memdb.WatchSet, namespace string) iter.Seq[*structs.ServiceRegistration] {
	prefix := ""
	if namespace != structs.AllNamespaces {
		prefix = joinKey(namespace, "")
	}
	return shownServices(scan[*serviceRow](r.at(), ws, TableServices, indexName, prefix))
}

// ServicesByName gives the registrations of one service, by id.
func (r Reader) ServicesByName(ws memdb.WatchSet, namespace, name string) iter.Seq[*structs.ServiceRegistration] {
	return shownServices(scan[*serviceRow](r.at(), ws, TableServices, indexName, joinKey(namespace, name, "")))
}

// ServicesByJob gives the registrations of a job's allocations, by id.
func (r Reader) ServicesByJob(ws memdb.WatchSet, namespace, jobID string) iter.Seq[*structs.ServiceRegistration] {
	return shownServices(scan[*serviceRow](r.at(), ws, TableServices, indexJob, joinKey(namespace, jobID, "")))
}

// ServicesByAlloc gives the registrations of one allocation, by id.
func (r Reader) ServicesByAlloc(ws memdb.WatchSet, allocID string) iter.Seq[*structs.ServiceRegistration] {
	return shownServices(scan[*serviceRow](r.at(), ws, TableServices, indexAlloc, joinKey(allocID, "")))
}

// Service gives one registration, nil when there is none. It may be one that no list shows at present.
func (r Reader) Service(ws memdb.WatchSet, namespace, id string) *structs.ServiceRegistration {
	if row := get[*serviceRow](r.at(), ws, TableServices, indexID, serviceRowKey(namespace, id)); row != nil {
		return row.ServiceRegistration
	}
	return nil
}

// ServicesByNode gives the registrations of a node, those included that no list shows at present.
func (r Reader) ServicesByNode(nodeID string) iter.Seq[*structs.ServiceRegistration] {
	return func(yield func(*structs.ServiceRegistration) bool) {
		for alloc := range r.allocRow(nil, rowByNode, nodeID).all() {
			if serviceFate(alloc) == serviceGone {
				continue
			}
			for row := range scan[*serviceRow](r.at(), nil, TableServices, indexAlloc, joinKey(alloc.ID, "")) {
				if !yield(row.ServiceRegistration) {
					return
				}
			}
		}
	}
}

func shownServices(rows iter.Seq[*serviceRow]) iter.Seq[*structs.ServiceRegistration] {
	return func(yield func(*structs.ServiceRegistration) bool) {
		for row := range rows {
			if !row.Hidden && !yield(row.ServiceRegistration) {
				return
			}
		}
	}
}

// fate is what becomes of the services of an allocation.
type fate uint8

const (
	serviceShown fate = iota
	serviceHidden
	serviceGone
)

// serviceFate follows from what was observed and inferred of the allocation: one that has ended or is given up offers
// nothing, one that cannot be heard is not to be relied on. A change of the leader hides nothing.
func serviceFate(alloc *structs.Allocation) fate {
	switch {
	case alloc.ObservedTerminal() || alloc.Condition.Status == structs.ConditionLost:
		return serviceGone
	case alloc.Condition.Grace:
		return serviceShown
	case alloc.Condition.Status == structs.ConditionAway || alloc.Condition.Status == structs.ConditionUnknown:
		return serviceHidden
	}
	return serviceShown
}

// UpsertServices stores what nodes offer. Each registration names its node and allocation; one whose allocation is not
// on that node, has ended or is to stop is left out, since it must not be found. What is the same already stays as it
// is. It gives the number of those that were changed.
func (tx *Txn) UpsertServices(list []*structs.ServiceRegistration) int {
	changed := 0
	for _, s := range list {
		alloc := tx.alloc(s.AllocID)
		if alloc == nil || alloc.NodeID != s.NodeID || alloc.ServerTerminal() || serviceFate(alloc) == serviceGone || !s.OwnID() {
			continue
		}
		row := *s
		row.Namespace, row.JobID = alloc.Namespace, alloc.JobID
		if node := tx.node(alloc.NodeID); node != nil {
			row.Datacenter = node.Datacenter
		}
		row.CreateIndex, row.ModifyIndex = tx.index, tx.index
		hidden := serviceFate(alloc) == serviceHidden
		if old := lookup[*serviceRow](tx, TableServices, serviceRowKey(row.Namespace, row.ID)); old != nil {
			if SameService(old.ServiceRegistration, &row) && old.Hidden == hidden {
				continue
			}
			row.CreateIndex = old.CreateIndex
		}
		tx.put(TableServices, &serviceRow{ServiceRegistration: &row, Hidden: hidden})
		changed++
	}
	return changed
}

// SameService says whether two registrations tell the same, their indexes aside.
func SameService(a, b *structs.ServiceRegistration) bool {
	return a.ID == b.ID && a.ServiceName == b.ServiceName && a.Namespace == b.Namespace && a.NodeID == b.NodeID &&
		a.Datacenter == b.Datacenter && a.JobID == b.JobID && a.AllocID == b.AllocID && a.Address == b.Address &&
		a.Port == b.Port && slices.Equal(a.Tags, b.Tags)
}

// DeleteService removes a registration and says whether it was there. With a node's id only that node's counts.
func (tx *Txn) DeleteService(namespace, id, nodeID string) bool {
	row := lookup[*serviceRow](tx, TableServices, serviceRowKey(namespace, id))
	if row == nil || nodeID != "" && row.NodeID != nodeID {
		return false
	}
	tx.remove(TableServices, serviceRowKey(namespace, id))
	return true
}

// followAlloc shows, hides or removes the services of an allocation that has changed; after is nil when it is gone.
// No entry both registers services and changes their allocations, so those of the base are all there are.
func (tx *Txn) followAlloc(before, after *structs.Allocation) {
	if before == nil {
		return
	}
	to := serviceGone
	if after != nil {
		to = serviceFate(after)
	}
	if serviceFate(before) == to && after != nil {
		return
	}
	for row := range scan[*serviceRow](tx.base, nil, TableServices, indexAlloc, joinKey(before.ID, "")) {
		key := serviceRowKey(row.Namespace, row.ID)
		row = lookup[*serviceRow](tx, TableServices, key)
		switch {
		case row == nil:
		case to == serviceGone:
			tx.remove(TableServices, key)
		default:
			reg := *row.ServiceRegistration
			reg.ModifyIndex = tx.index
			tx.put(TableServices, &serviceRow{ServiceRegistration: &reg, Hidden: to == serviceHidden})
		}
	}
}

// ServiceNames gives the services of a namespace (structs.AllNamespaces: of all) with the tags of their instances, by
// namespace and name.
func (r Reader) ServiceNames(ws memdb.WatchSet, namespace string) []*structs.ServiceRegistrationListStub {
	out := []*structs.ServiceRegistrationListStub{}
	for s := range r.Services(ws, namespace) {
		if len(out) == 0 || out[len(out)-1].Namespace != s.Namespace {
			out = append(out, &structs.ServiceRegistrationListStub{Namespace: s.Namespace})
		}
		in := out[len(out)-1]
		if n := len(in.Services); n == 0 || in.Services[n-1].ServiceName != s.ServiceName {
			in.Services = append(in.Services, &structs.ServiceRegistrationStub{ServiceName: s.ServiceName, Tags: []string{}})
		}
		stub := in.Services[len(in.Services)-1]
		for _, tag := range s.Tags {
			if at, found := slices.BinarySearchFunc(stub.Tags, tag, strings.Compare); !found {
				stub.Tags = slices.Insert(stub.Tags, at, tag)
			}
		}
	}
	return out
}
