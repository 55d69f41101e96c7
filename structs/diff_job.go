package structs

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Types of differences.
const (
	DiffTypeNone    = "None"
	DiffTypeAdded   = "Added"
	DiffTypeDeleted = "Deleted"
	DiffTypeEdited  = "Edited"
)

// DiffJobs tells what a user would see change from one version of a job to another; nil is no job. Both must be
// canonical. What servers write is left out. The type is None if and only if
// SpecEqual says so, thus a change of the order of blocks alone is a difference too, called Order. With contextual, blocks that
// changed also hold their unchanged values, and groups and tasks that did not change are there with type None.
// It fails with CodeInvalid when these are two jobs.
func DiffJobs(old, new *Job, contextual bool) (*JobDiff, error) {
	diff := &JobDiff{Type: DiffTypeNone}
	switch {
	case old == nil && new == nil:
		return diff, nil
	case old == nil:
		diff.Type, diff.ID = DiffTypeAdded, Val(new.ID)
	case new == nil:
		diff.Type, diff.ID = DiffTypeDeleted, Val(old.ID)
	case Val(old.ID) != Val(new.ID):
		return nil, Errorf(CodeInvalid, "cannot compare jobs with different ids: %q and %q", Val(old.ID), Val(new.ID))
	default:
		diff.ID = Val(new.ID)
	}
	d := differ{contextual: contextual}
	diff.Fields, diff.Objects = d.top(reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem())
	diff.TaskGroups = d.groups(old, new)
	if diff.Type == DiffTypeNone && (len(diff.Fields) > 0 || len(diff.Objects) > 0 ||
		slices.ContainsFunc(diff.TaskGroups, func(g *TaskGroupDiff) bool { return g.Type != DiffTypeNone })) {
		diff.Type = DiffTypeEdited
	}
	return diff, nil
}

// differ compares values of the data model by reflection, with what diffRules say about single fields.
type differ struct{ contextual bool }

// top compares jobs, groups or tasks: of their own values only what changed is of interest.
func (d differ) top(old, new reflect.Value) ([]*FieldDiff, []*ObjectDiff) {
	fields, objects := d.block(old, new)
	fields = slices.DeleteFunc(fields, func(f *FieldDiff) bool { return f.Type == DiffTypeNone })
	if len(fields) == 0 {
		fields = nil
	}
	return fields, objects
}

func (d differ) groups(old, new *Job) []*TaskGroupDiff {
	var a, b []*TaskGroup
	if old != nil {
		a = old.TaskGroups
	}
	if new != nil {
		b = new.TaskGroups
	}
	var out []*TaskGroupDiff
	for _, p := range pairs(a, b, func(tg *TaskGroup) string { return Val(tg.Name) }) {
		diff := &TaskGroupDiff{Name: p.key, Type: p.kind()}
		diff.Fields, diff.Objects = d.top(reflect.ValueOf(p.old).Elem(), reflect.ValueOf(p.new).Elem())
		diff.Fields = append(diff.Fields, p.place...)
		diff.Tasks = d.tasks(p.old, p.new)
		if diff.Type == DiffTypeNone && (len(diff.Fields) > 0 || len(diff.Objects) > 0 ||
			slices.ContainsFunc(diff.Tasks, func(t *TaskDiff) bool { return t.Type != DiffTypeNone })) {
			diff.Type = DiffTypeEdited
		}
		if diff.Type != DiffTypeNone || d.contextual {
			out = append(out, diff)
		}
	}
	return out
}

func (d differ) tasks(old, new *TaskGroup) []*TaskDiff {
	var a, b []*Task
	if old != nil {
		a = old.Tasks
	}
	if new != nil {
		b = new.Tasks
	}
	var out []*TaskDiff
	for _, p := range pairs(a, b, func(t *Task) string { return t.Name }) {
		diff := &TaskDiff{Name: p.key, Type: p.kind()}
		diff.Fields, diff.Objects = d.top(reflect.ValueOf(p.old).Elem(), reflect.ValueOf(p.new).Elem())
		diff.Fields = append(diff.Fields, p.place...)
		if diff.Type == DiffTypeNone && (len(diff.Fields) > 0 || len(diff.Objects) > 0) {
			diff.Type = DiffTypeEdited
		}
		if diff.Type != DiffTypeNone || d.contextual {
			out = append(out, diff)
		}
	}
	return out
}

// pair is the same thing in two versions; one of them may be missing.
type pair[T any] struct {
	key      string
	old, new *T
	place    []*FieldDiff // that its place among all that are in both versions changed
}

func (p pair[T]) kind() string {
	switch {
	case p.old == nil:
		return DiffTypeAdded
	case p.new == nil:
		return DiffTypeDeleted
	}
	return DiffTypeNone
}

// pairs matches the elements of two lists by their names, in the order of the names.
func pairs[T any](old, new []*T, name func(*T) string) []pair[T] {
	var out []pair[T]
	places := map[string]int{}
	for _, o := range old {
		places[name(o)] = len(out)
		out = append(out, pair[T]{key: name(o), old: o})
	}
	partner := make([]int, len(out))
	for at, n := range new {
		if i, ok := places[name(n)]; ok && out[i].new == nil {
			out[i].new, partner[i] = n, at+1
		} else {
			out = append(out, pair[T]{key: name(n), new: n})
		}
	}
	for i, place := range newPlaces(partner) {
		out[i].place = place
	}
	slices.SortStableFunc(out, func(a, b pair[T]) int { return strings.Compare(a.key, b.key) })
	return out
}

// block compares two structs, of which one may be missing (an invalid value).
func (d differ) block(old, new reflect.Value) (fields []*FieldDiff, objects []*ObjectDiff) {
	known := old
	if !known.IsValid() {
		known = new
	}
	if !known.IsValid() {
		return nil, nil
	}
	t := known.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		rule := diffRules[t.Name()+"."+f.Name]
		if rule.skip != "" {
			continue
		}
		name := cmp.Or(rule.name, f.Name)
		a, b := fieldOf(old, i), fieldOf(new, i)
		switch kindOf(f.Type) {
		case kindScalar:
			fields = append(fields, d.scalar(name, a, b)...)
		case kindTexts:
			fields = append(fields, d.flat(flatten(name, a), flatten(name, b))...)
		case kindList:
			objects = append(objects, d.list(name, a, b)...)
		case kindFree:
			objects = append(objects, d.free(name, a, b)...)
		case kindBlock:
			objects = append(objects, d.object(name, indirect(a), indirect(b))...)
		case kindBlocks:
			objects = append(objects, d.blocks(name, rule.key, a, b)...)
		}
	}
	slices.SortStableFunc(fields, func(a, b *FieldDiff) int { return strings.Compare(a.Name, b.Name) })
	return fields, objects
}

func fieldOf(v reflect.Value, i int) reflect.Value {
	if !v.IsValid() {
		return v
	}
	return v.Field(i)
}

// indirect gives what a pointer points to, an invalid value for nil.
func indirect(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// scalar compares single values. Missing and empty ones are the same.
func (d differ) scalar(name string, old, new reflect.Value) []*FieldDiff {
	a, b := diffText(old), diffText(new)
	return d.field(name, a, b, a != "", b != "")
}

func (d differ) field(name, old, new string, had, has bool) []*FieldDiff {
	f := &FieldDiff{Type: DiffTypeEdited, Name: name, Old: old, New: new}
	switch {
	case had == has && old == new:
		if !d.contextual {
			return nil
		}
		f.Type = DiffTypeNone
	case !had:
		f.Type = DiffTypeAdded
	case !has:
		f.Type = DiffTypeDeleted
	}
	return []*FieldDiff{f}
}

// object compares two blocks of one name; unchanged ones are not told. More are differences beside those of its values.
func (d differ) object(name string, old, new reflect.Value, more ...*FieldDiff) []*ObjectDiff {
	o := &ObjectDiff{Name: name}
	o.Fields, o.Objects = d.block(old, new)
	o.Fields = append(o.Fields, more...)
	return finish(o, old.IsValid(), new.IsValid())
}

// finish gives an object its type, or leaves it out.
func finish(o *ObjectDiff, had, has bool) []*ObjectDiff {
	switch {
	case !had && !has:
		return nil
	case !had:
		o.Type = DiffTypeAdded
	case !has:
		o.Type = DiffTypeDeleted
	case len(o.Objects) > 0 || slices.ContainsFunc(o.Fields, func(f *FieldDiff) bool { return f.Type != DiffTypeNone }):
		o.Type = DiffTypeEdited
	default:
		return nil
	}
	return []*ObjectDiff{o}
}
