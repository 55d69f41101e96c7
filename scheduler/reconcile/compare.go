package reconcile

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Kind says how an allocation gets to a newer version of its job.
type Kind int

// The kinds, from least to most.
const (
	KindIgnore      Kind = iota // it runs that version already
	KindInPlace                 // the node is told, nothing stops
	KindDestructive             // it is stopped and placed anew
)

// Difference is the outcome of comparing two versions of a group.
type Difference struct {
	Kind Kind
	What []string // what makes it destructive; empty otherwise
}

// Compare tells what an allocation of group name must go through to get from one version of its job to another.
// Everything that a running task was given at its start makes the update destructive: what it runs, its environment,
// its resources, networks and volumes, and where it prefers to be. The rest (counts, policies, checks, delays) reaches it in place.
func Compare(from, to *structs.Job, name string) Difference {
	a, b := from.LookupTaskGroup(name), to.LookupTaskGroup(name)
	if a == nil || b == nil {
		return Difference{KindDestructive, []string{"group"}}
	}
	var d differ
	d.add("meta", mergedMeta(from.Meta, a.Meta), mergedMeta(to.Meta, b.Meta))
	d.add("group network", a.Networks, b.Networks)
	d.add("ephemeral_disk", a.EphemeralDisk, b.EphemeralDisk)
	d.add("volume", a.Volumes, b.Volumes)
	d.add("affinity", [][]*structs.Affinity{from.Affinities, a.Affinities}, [][]*structs.Affinity{to.Affinities, b.Affinities})
	d.add("spread", [][]*structs.Spread{from.Spreads, a.Spreads}, [][]*structs.Spread{to.Spreads, b.Spreads})
	d.add("consul", a.Consul, b.Consul)
	d.add("connect", connects(a.Services), connects(b.Services))
	d.add("lease", leaseOf(a), leaseOf(b))
	if len(a.Tasks) != len(b.Tasks) {
		d.what = append(d.what, "tasks")
	}
	for _, x := range a.Tasks {
		y := b.LookupTask(x.Name)
		if y == nil {
			d.what = append(d.what, "task "+x.Name)
			continue
		}
		d.task(x, y)
	}
	if len(d.what) > 0 {
		return Difference{KindDestructive, d.what}
	}
	return Difference{Kind: KindInPlace}
}

// differ collects the names of what differs.
type differ struct{ what []string }

func (d *differ) add(name string, a, b any) {
	if !equal(reflect.ValueOf(a), reflect.ValueOf(b)) {
		d.what = append(d.what, name)
	}
}

func (d *differ) task(a, b *structs.Task) {
	in := "task " + a.Name + " "
	d.add(in+"driver", a.Driver, b.Driver)
	d.add(in+"user", a.User, b.User)
	d.add(in+"config", a.Config, b.Config)
	d.add(in+"env", a.Env, b.Env)
	d.add(in+"meta", a.Meta, b.Meta)
	d.add(in+"artifact", a.Artifacts, b.Artifacts)
	d.add(in+"template", a.Templates, b.Templates)
	d.add(in+"vault", a.Vault, b.Vault)
	d.add(in+"consul", a.Consul, b.Consul)
	d.add(in+"dispatch_payload", a.DispatchPayload, b.DispatchPayload)
	d.add(in+"volume_mount", a.VolumeMounts, b.VolumeMounts)
	d.add(in+"csi_plugin", a.CSIPluginConfig, b.CSIPluginConfig)
	d.add(in+"lifecycle", a.Lifecycle, b.Lifecycle)
	d.add(in+"leader", a.Leader, b.Leader)
	d.add(in+"kind", a.Kind, b.Kind)
	d.add(in+"logs", a.LogConfig, b.LogConfig)
	d.add(in+"identity", []any{a.Identity, a.Identities}, []any{b.Identity, b.Identities})
	d.add(in+"secret", a.Secrets, b.Secrets)
	d.add(in+"schedule", a.Schedule, b.Schedule)
	d.add(in+"resources", a.Resources, b.Resources)
}

// mergedMeta is the meta that tasks of a group see from above.
func mergedMeta(job, group map[string]string) map[string]string {
	if len(group) == 0 {
		return job
	}
	merged := maps.Clone(group)
	for k, v := range job {
		if _, ok := merged[k]; !ok {
			merged[k] = v
		}
	}
	return merged
}

// connects are the service mesh parts of services, which decide about tasks and networks of an allocation.
func connects(services []*structs.Service) []*structs.ConsulConnect {
	var out []*structs.ConsulConnect
	for _, s := range services {
		if s.Connect != nil {
			out = append(out, s.Connect)
		}
	}
	return out
}

// equal is deep equality in which empty and missing lists and maps are the same, and numbers of different types are
// compared by value: a driver's config comes with floats from JSON and with integers from a jobspec.
func equal(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return equalNumbers(a, b)
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for iter := a.MapRange(); iter.Next(); {
			if v := b.MapIndex(iter.Key()); !v.IsValid() || !equal(iter.Value(), v) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

func equalNumbers(a, b reflect.Value) bool {
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x == y
}

func number(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// comparer remembers the outcome for each older version and group.
type comparer struct {
	job   *structs.Job
	known map[comparison]Difference
}

type comparison struct {
	from  *structs.Job
	group string
}

func (c *comparer) compare(a *structs.Allocation) Difference {
	if sameVersion(c.job, a) {
		return Difference{}
	}
	key := comparison{a.Job, a.TaskGroup}
	d, ok := c.known[key]
	if !ok {
		d = Compare(a.Job, c.job, a.TaskGroup)
		slices.Sort(d.What)
		c.known[key] = d
	}
	return d
}

// leaseOf is what node and servers have to agree on to tell when a group has surely ended: a node that cannot be heard
// would not learn of a change.
func leaseOf(tg *structs.TaskGroup) [2]time.Duration {
	lease, kill := tg.LeaseOn(nil)
	return [2]time.Duration{lease, kill}
}

// TaskDestructive says whether a task's change from a to b stops what runs.
func TaskDestructive(a, b *structs.Task) bool {
	var d differ
	d.task(a, b)
	return len(d.what) > 0
}
