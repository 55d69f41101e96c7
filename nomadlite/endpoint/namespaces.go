package endpoint

import (
	"iter"
	"net/http"
	"regexp"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func namespaceRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/namespaces", b.handler(b.listNamespaces)),
		write("/v1/namespace", b.handler(b.upsertNamespace)),
		read("/v1/namespace/{name}", b.handler(b.readNamespace)),
		write("/v1/namespace/{name}", b.handler(b.upsertNamespace)),
		remove("/v1/namespace/{name}", b.handler(b.deleteNamespace)),
	}
}

var namespaceName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,128}$`)

func (b *Backend) listNamespaces(w http.ResponseWriter, r *route.Request, q *query) error {
	var rows iter.Seq[*structs.Namespace]
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		rows = snap.Namespaces(ws)
		return max(1, snap.TableIndex(state.TableNamespaces)) // there always is one
	})
	if err != nil {
		return err
	}
	return answerList(w, q, list[*structs.Namespace]{
		rows:  rows,
		token: func(n *structs.Namespace) string { return n.Name },
		keep:  func(n *structs.Namespace) bool { return hasPrefix(n.Name, q.prefix) },
		show:  func(n *structs.Namespace) any { return n },
	})
}

func (b *Backend) readNamespace(w http.ResponseWriter, r *route.Request, q *query) error {
	var ns *structs.Namespace
	err := b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		ns = snap.Namespace(ws, r.Param("name"))
		if ns == nil {
			return snap.TableIndex(state.TableNamespaces)
		}
		return ns.ModifyIndex
	})
	if err != nil {
		return err
	}
	if ns == nil {
		return notFound("namespace")
	}
	return answer(w, q, ns)
}

func (b *Backend) upsertNamespace(w http.ResponseWriter, r *route.Request, q *query) error {
	var ns structs.Namespace
	if err := decode(r, &ns); err != nil {
		return err
	}
	if name := r.Param("name"); name != "" {
		if ns.Name != "" && ns.Name != name {
			return structs.Errorf(structs.CodeInvalid, "name %q does not match the path's %q", ns.Name, name)
		}
		ns.Name = name
	}
	switch {
	case ns.Name == "":
		return structs.Errorf(structs.CodeInvalid, "missing namespace name")
	case !namespaceName.MatchString(ns.Name):
		return structs.Errorf(structs.CodeInvalid, "invalid name %q. Must match regex %s", ns.Name, namespaceName)
	case len(ns.Description) > 256:
		return structs.Errorf(structs.CodeInvalid, "description longer than 256 characters")
	case ns.Quota != "":
		return unsupported("a quota")
	}
	_, index, err := b.apply(r.Context(), fsm.KindNamespaceUpsert, &fsm.NamespaceUpsert{Namespaces: []*structs.Namespace{&ns}})
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, nil)
}

func (b *Backend) deleteNamespace(w http.ResponseWriter, r *route.Request, q *query) error {
	_, index, err := b.apply(r.Context(), fsm.KindNamespaceDelete, &fsm.NamespaceDelete{Names: []string{r.Param("name")}})
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, nil)
}
