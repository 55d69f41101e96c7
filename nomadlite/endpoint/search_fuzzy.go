package endpoint

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// SearchLimits bounds fuzzy searches. Zero values mean the defaults.
type SearchLimits struct {
	Disabled bool
	Objects  int // of one kind that are looked at; default 10000
	Results  int // of one kind that are answered; default 100
	MinTerm  int // bytes of the shortest text that is searched; default 2
}

func (l SearchLimits) withDefaults() SearchLimits {
	for _, f := range []struct {
		value *int
		def   int
	}{{&l.Objects, 10000}, {&l.Results, 100}, {&l.MinTerm, 2}} {
		if *f.value <= 0 {
			*f.value = f.def
		}
	}
	return l
}

// fuzzyKinds are the kinds whose names are searched. One kind of object may have matches of several: a job has those
// of its groups, tasks and what they run. Of all other kinds the id must begin with the text.
var fuzzyKinds = map[string]func(f *fuzzySearch, snap *state.Snapshot, namespace string){
	"jobs": func(f *fuzzySearch, snap *state.Snapshot, namespace string) {
		for job := range snap.Jobs(nil, namespace) {
			if !f.look("jobs") {
				return
			}
			f.job(job)
		}
	},
	"allocs": func(f *fuzzySearch, snap *state.Snapshot, namespace string) {
		for alloc := range snap.Allocs(nil, namespace) {
			if !f.look("allocs") {
				return
			}
			f.name("allocs", alloc.Name, alloc.Namespace, alloc.ID)
		}
	},
	"nodes": func(f *fuzzySearch, snap *state.Snapshot, _ string) {
		for node := range snap.Nodes(nil) {
			if !f.look("nodes") {
				return
			}
			f.name("nodes", node.Name, node.ID)
		}
	},
	"node_pools": func(f *fuzzySearch, snap *state.Snapshot, _ string) {
		for pool := range snap.NodePools(nil) {
			if !f.look("node_pools") {
				return
			}
			f.name("node_pools", pool.Name)
		}
	},
	"namespaces": func(f *fuzzySearch, snap *state.Snapshot, _ string) {
		for ns := range snap.Namespaces(nil) {
			if !f.look("namespaces") {
				return
			}
			f.name("namespaces", ns.Name)
		}
	},
}

// fuzzySearch is one search under way.
type fuzzySearch struct {
	text    string // lower case
	limits  SearchLimits
	looked  map[string]int
	matches map[string][]fuzzyHit
	cut     map[string]bool
}

type fuzzyHit struct {
	structs.FuzzyMatch
	at int // where the text is in the name
}

// look counts an object of a kind and says whether it may be looked at.
func (f *fuzzySearch) look(kind string) bool {
	if f.looked[kind] >= f.limits.Objects {
		f.cut[kind] = true
		return false
	}
	f.looked[kind]++
	return true
}

// name notes a match when the name holds the text.
func (f *fuzzySearch) name(kind, name string, scope ...string) {
	if at := strings.Index(strings.ToLower(name), f.text); at >= 0 {
		f.matches[kind] = append(f.matches[kind], fuzzyHit{structs.FuzzyMatch{ID: name, Scope: scope}, at})
	}
}

// job searches a job's name and the names of all in it.
func (f *fuzzySearch) job(job *structs.Job) {
	ns, id := structs.Val(job.Namespace), structs.Val(job.ID)
	f.name("jobs", structs.Val(job.Name), ns, id)
	for _, group := range job.TaskGroups {
		groupName := structs.Val(group.Name)
		f.name("groups", groupName, ns, id)
		for _, service := range group.Services {
			f.name("services", service.Name, ns, id, groupName)
		}
		for _, task := range group.Tasks {
			f.name("tasks", task.Name, ns, id, groupName)
			for _, service := range task.Services {
				f.name("services", service.Name, ns, id, groupName, task.Name)
			}
			for kind, key := range map[string]string{"commands": "command", "images": "image", "classes": "class"} {
				if what, ok := task.Config[key].(string); ok {
					f.name(kind, what, ns, id, groupName, task.Name)
				}
			}
		}
	}
}

// best gives the matches of a kind: those with the text further ahead first, then the shorter.
func (f *fuzzySearch) best(kind string) []structs.FuzzyMatch {
	hits := f.matches[kind]
	slices.SortStableFunc(hits, func(a, b fuzzyHit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	if len(hits) > f.limits.Results {
		hits, f.cut[kind] = hits[:f.limits.Results], true
	}
	out := make([]structs.FuzzyMatch, 0, len(hits))
	for _, hit := range hits {
		out = append(out, hit.FuzzyMatch)
	}
	return out
}

func (b *Backend) searchFuzzy(w http.ResponseWriter, r *route.Request, q *query) error {
	var req struct{ Text, Context string }
	if err := decode(r, &req); err != nil {
		return err
	}
	limits := b.Limits.Search.withDefaults()
	if limits.Disabled {
		return structs.Errorf(structs.CodeInvalid, "fuzzy search is not enabled")
	}
	if len(req.Text) < limits.MinTerm {
		return structs.Errorf(structs.CodeInvalid, "fuzzy search query must be at least %d characters, got %d",
			limits.MinTerm, len(req.Text))
	}
	kinds, err := kindsOf(req.Context)
	if err != nil {
		return err
	}
	snap := b.Store.Snapshot()
	f := &fuzzySearch{text: strings.ToLower(req.Text), limits: limits, looked: map[string]int{},
		matches: map[string][]fuzzyHit{}, cut: map[string]bool{}}
	out := structs.FuzzySearchResponse{Matches: map[string][]structs.FuzzyMatch{}, Truncations: map[string]bool{}}
	for _, kind := range kinds {
		if search := fuzzyKinds[kind]; search != nil {
			search(f, snap, q.namespace)
			continue
		}
		ids, more := idsOf(snap, kind, q.namespace, req.Text)
		out.Matches[kind], out.Truncations[kind] = []structs.FuzzyMatch{}, more
		for _, id := range ids {
			out.Matches[kind] = append(out.Matches[kind], structs.FuzzyMatch{ID: id})
		}
	}
	for kind := range f.matches {
		out.Matches[kind] = f.best(kind)
		out.Truncations[kind] = f.cut[kind]
	}
	for kind := range f.cut {
		out.Truncations[kind] = true
	}
	b.setReadHeaders(w, snap.Index())
	return answer(w, q, out)
}
