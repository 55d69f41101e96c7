package endpoint

import (
	"iter"
	"maps"
	"net/http"
	"slices"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// searchLimit is how many matches of one kind are answered.
const searchLimit = 20

func searchRoutes(b *Backend) []route.Route {
	return []route.Route{
		write("/v1/search", b.handler(b.searchPrefix)),
		write("/v1/search/fuzzy", b.handler(b.searchFuzzy)),
	}
}

// searchKinds are the kinds of objects that can be searched, with the ids of those of a namespace that begin with a
// prefix. Kinds that nomadlite does not keep have no matches.
var searchKinds = map[string]func(snap *state.Snapshot, namespace, prefix string) iter.Seq[string]{
	"jobs": func(snap *state.Snapshot, namespace, prefix string) iter.Seq[string] {
		return ids(snap.JobsByPrefix(nil, namespace, prefix), func(j *structs.Job) string { return structs.Val(j.ID) }, prefix)
	},
	"allocs": func(snap *state.Snapshot, namespace, prefix string) iter.Seq[string] {
		return ids(snap.AllocsByPrefix(nil, namespace, prefix), func(a *structs.Allocation) string { return a.ID }, prefix)
	},
	"evals": func(snap *state.Snapshot, namespace, prefix string) iter.Seq[string] {
		return ids(snap.EvalsByPrefix(nil, namespace, prefix), func(e *structs.Evaluation) string { return e.ID }, prefix)
	},
	"deployment": func(snap *state.Snapshot, namespace, prefix string) iter.Seq[string] {
		return ids(snap.Deployments(nil, namespace), func(d *structs.Deployment) string { return d.ID }, prefix)
	},
	"nodes": func(snap *state.Snapshot, _, prefix string) iter.Seq[string] {
		return ids(snap.NodesByPrefix(nil, prefix), func(n *structs.Node) string { return n.ID }, prefix)
	},
	"node_pools": func(snap *state.Snapshot, _, prefix string) iter.Seq[string] {
		return ids(snap.NodePoolsByPrefix(nil, prefix), func(p *structs.NodePool) string { return p.Name }, prefix)
	},
	"namespaces": func(snap *state.Snapshot, _, prefix string) iter.Seq[string] {
		return ids(snap.Namespaces(nil), func(n *structs.Namespace) string { return n.Name }, prefix)
	},
	"scaling_policy": nil, "plugins": nil, "vars": nil, "volumes": nil, "host_volumes": nil, "quotas": nil,
	"recommendations": nil,
}

func ids[T any](rows iter.Seq[T], id func(T) string, prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for row := range rows {
			if name := id(row); hasPrefix(name, prefix) && !yield(name) {
				return
			}
		}
	}
}

// kindsOf gives the kinds which a search's context stands for.
func kindsOf(context string) ([]string, error) {
	if context == "" || context == "all" {
		return slices.Sorted(maps.Keys(searchKinds)), nil
	}
	if _, ok := searchKinds[context]; !ok {
		return nil, structs.Errorf(structs.CodeInvalid, "invalid context %q", context)
	}
	return []string{context}, nil
}

// idsOf gives the ids of a kind that begin with prefix, and whether there are more.
func idsOf(snap *state.Snapshot, kind, namespace, prefix string) (out []string, more bool) {
	out = []string{}
	find := searchKinds[kind]
	if find == nil {
		return out, false
	}
	for id := range find(snap, namespace, prefix) {
		if len(out) == searchLimit {
			return out, true
		}
		out = append(out, id)
	}
	return out, false
}

func (b *Backend) searchPrefix(w http.ResponseWriter, r *route.Request, q *query) error {
	var req struct{ Prefix, Context string }
	if err := decode(r, &req); err != nil {
		return err
	}
	kinds, err := kindsOf(req.Context)
	if err != nil {
		return err
	}
	snap := b.Store.Snapshot()
	out := structs.SearchResponse{Matches: map[string][]string{}, Truncations: map[string]bool{}}
	for _, kind := range kinds {
		out.Matches[kind], out.Truncations[kind] = idsOf(snap, kind, q.namespace, req.Prefix)
	}
	b.setReadHeaders(w, snap.Index())
	return answer(w, q, out)
}
