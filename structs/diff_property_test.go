package structs

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// mutation changes one value below a job.
type mutation struct {
	v reflect.Value
	// name is of the field that holds it.
	name string
}

// mutable finds all that can be set below v.
func mutable(v reflect.Value, name string, out []mutation) []mutation {
	if v.CanSet() && name != "Job.ID" {
		out = append(out, mutation{v, name})
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out = mutable(v.Elem(), name, out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = mutable(v.Index(i), name, out)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Pointer {
			for iter := v.MapRange(); iter.Next(); {
				out = mutable(iter.Value(), name, out)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out = mutable(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, out)
		}
	}
	return out
}

// apply makes another value of it, or the same one written in another way.
func (m mutation) apply(t *rapid.T) {
	unique := m.name == "TaskGroup.Name" || m.name == "Task.Name"
	switch k := m.v.Kind(); {
	case k == reflect.Map && m.v.Type().Elem().Kind() == reflect.Interface:
		free := rapid.SampledFrom([]any{nil, "1", 1, 1.0, true, "true", []any{}, map[string]any{}, "", []any{"a", 1}}).Draw(t, "free")
		m.v.SetMapIndex(reflect.ValueOf(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")), reflect.ValueOf(&free).Elem())
	case k == reflect.Map && rapid.Bool().Draw(t, "empty"):
		m.v.Set(reflect.MakeMap(m.v.Type()))
	case k == reflect.Slice && m.v.Len() > 1 && rapid.Bool().Draw(t, "swap"):
		reflect.Swapper(m.v.Interface())(0, m.v.Len()-1)
	case k == reflect.Slice && rapid.Bool().Draw(t, "empty"):
		m.v.Set(reflect.MakeSlice(m.v.Type(), 0, 0))
	case k == reflect.Struct || k == reflect.Interface: // by their parts
	case !unique && rapid.Bool().Draw(t, "zero"):
		if k == reflect.Pointer && m.v.Type().Elem().Kind() != reflect.Struct {
			m.v.Set(reflect.New(m.v.Type().Elem())) // there, but zero
		} else if k != reflect.Pointer || m.name != "Job.TaskGroups" && m.name != "TaskGroup.Tasks" {
			m.v.SetZero()
		}
	case k == reflect.Pointer && m.v.IsNil(), k == reflect.Slice && m.v.Len() == 0, k == reflect.Map && m.v.Len() == 0:
	case k == reflect.Pointer && m.v.Type().Elem().Kind() == reflect.Struct:
	default:
		alter(m.v)
	}
}

// Two jobs without a difference are the same specification, and the other way round, whatever was changed, reordered or
// written in another way.
func TestDiffAgreesWithSpecEqual(t *testing.T) {
	base := filled[Job]("")
	single(reflect.ValueOf(base.TaskGroups[1])) // enough for their order
	single(reflect.ValueOf(base.TaskGroups[0].Tasks[1]))
	single(reflect.ValueOf(base.TaskGroups[0].Services[1]))
	single(reflect.ValueOf(&base.TaskGroups[0].Tasks[0].Services).Elem())
	rapid.Check(t, func(t *rapid.T) {
		old, changed := base.Copy(), base.Copy()
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			side := rapid.SampledFrom([]*Job{old, changed}).Draw(t, "side")
			all := mutable(reflect.ValueOf(side).Elem(), "Job", nil)
			all[rapid.IntRange(1, len(all)-1).Draw(t, "place")].apply(t)
		}
		for _, pair := range [][2]*Job{{old, changed}, {changed, old}} {
			d, err := DiffJobs(pair[0], pair[1], false)
			if err != nil {
				t.Fatal(err)
			}
			same := pair[0].SpecEqual(pair[1])
			if none := d.Type == DiffTypeNone; none != same || none != (len(told(d)) == 0) {
				t.Fatalf("the same specification is %t, the difference is %s: %s", same, d.Type, told(d))
			}
			full, err := DiffJobs(pair[0], pair[1], true)
			if err != nil || full.Type != d.Type || len(told(full)) != len(told(d)) {
				t.Fatalf("with context %s is %s: %v", d.Type, full.Type, err)
			}
		}
	})
}

// Only the order of blocks changes: a new version, and a plan that says so.
func TestOrderOfBlocksIsADifference(t *testing.T) {
	old := diffJob()
	old.Constraints = []*Constraint{{LTarget: "a", Operand: "="}, {LTarget: "b", Operand: "="}, {LTarget: "c", Operand: "="}}
	old.TaskGroups = append(old.TaskGroups, old.TaskGroups[0].Copy())
	old.TaskGroups[1].Name = Ptr("back")
	changed := old.Copy()
	reflect.Swapper(changed.Constraints)(0, 1)
	reflect.Swapper(changed.TaskGroups)(0, 1)
	want := []string{`Edited Constraint.Order: "1" => "2"`, `Edited Constraint.Order: "2" => "1"`,
		`Edited back.Order: "2" => "1"`, `Edited front.Order: "1" => "2"`}
	if lines := told(diffOf(t, old, changed, true)); !reflect.DeepEqual(lines, want) || old.SpecEqual(changed) {
		t.Errorf("told %q", lines)
	}
}

// A driver may tell a number from a text that looks like one.
func TestDiffTellsKindsOfValues(t *testing.T) {
	old, changed := diffJob(), diffJob()
	old.TaskGroups[0].Tasks[0].Config = map[string]any{"n": 1, "b": true, "z": nil, "e": []any{}}
	changed.TaskGroups[0].Tasks[0].Config = map[string]any{"n": "1", "b": "true", "z": "", "e": map[string]any{}}
	want := []string{`Edited front.nginx.Config.b: "true" => "\"true\""`, `Edited front.nginx.Config.e: "[]" => "{}"`,
		`Edited front.nginx.Config.n: "1" => "\"1\""`, `Edited front.nginx.Config.z: "null" => "\"\""`}
	if lines := told(diffOf(t, old, changed, false)); !reflect.DeepEqual(lines, want) {
		t.Errorf("told %q", lines)
	}
}
