package reconcile

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func jobOfOneTask() *structs.Job {
	j := &structs.Job{ID: structs.Ptr("web"), Datacenters: []string{"dc1"}, TaskGroups: []*structs.TaskGroup{{
		Name: structs.Ptr("front"), Tasks: []*structs.Task{{Name: "server", Driver: "mock"}}}}}
	j.Canonicalize()
	return j
}

// A change that stops nothing is named as a jobspec writes it.
func TestWhatIsToldInPlaceIsNamed(t *testing.T) {
	for want, change := range map[string]func(*structs.Job, *structs.TaskGroup, *structs.Task){
		"":                         func(*structs.Job, *structs.TaskGroup, *structs.Task) {},
		"job priority":             func(j *structs.Job, _ *structs.TaskGroup, _ *structs.Task) { j.Priority = structs.Ptr(70) },
		"count":                    func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) { g.Count = structs.Ptr(7) },
		"task server kill_timeout": func(_ *structs.Job, _ *structs.TaskGroup, k *structs.Task) { k.KillTimeout = structs.Ptr(time.Minute) },
		"shutdown_delay": func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
			g.ShutdownDelay = structs.Ptr(time.Second)
		},
		"count, task server kill_signal": func(_ *structs.Job, g *structs.TaskGroup, k *structs.Task) {
			g.Count, k.KillSignal = structs.Ptr(2), "SIGINT"
		},
	} {
		from, to := jobOfOneTask(), jobOfOneTask()
		change(to, to.TaskGroups[0], to.TaskGroups[0].Tasks[0])
		if got := strings.Join(toldInPlace(from, to, "front"), ", "); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if d := Compare(from, to, "front"); d.Kind != KindInPlace {
			t.Errorf("%s: %+v", want, d)
		}
	}
}

// Whatever field of a task or group a jobspec can set, a change of it has a name: by Compare when it stops what runs, else
// by what is told in place.
func TestEveryFieldThatDiffersHasAName(t *testing.T) {
	for _, of := range []func(*structs.Job) reflect.Value{
		func(j *structs.Job) reflect.Value { return reflect.ValueOf(j.TaskGroups[0]).Elem() },
		func(j *structs.Job) reflect.Value { return reflect.ValueOf(j.TaskGroups[0].Tasks[0]).Elem() },
	} {
		kind := of(jobOfOneTask()).Type()
		for i := range kind.NumField() {
			field := kind.Field(i)
			if field.Name == "Name" || field.Name == "Tasks" || field.Tag.Get("hcl") == "" {
				continue
			}
			from, to := jobOfOneTask(), jobOfOneTask()
			if v := of(to).Field(i); !set(v) || equal(v, of(from).Field(i)) {
				t.Fatalf("%s.%s: the test cannot change it", kind.Name(), field.Name)
			}
			if d := Compare(from, to, "front"); d.Kind == KindDestructive && len(d.What) > 0 {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("hcl"), ",")
			if got := toldInPlace(from, to, "front"); !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, name) }) {
				t.Errorf("%s.%s: its change is told as %q", kind.Name(), field.Name, got)
			}
		}
	}
}

// some is a value of a type, not nil.
func some(t reflect.Type) reflect.Value {
	if t.Kind() == reflect.Pointer {
		return reflect.New(t.Elem())
	}
	return reflect.New(t).Elem()
}

// set gives a value another one than it has.
func set(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		v.Set(fresh)
		return set(fresh.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && set(v.Field(i)) {
				return true
			}
		}
		return false
	case reflect.Slice:
		v.Set(reflect.Append(v, some(v.Type().Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(some(v.Type().Key()), some(v.Type().Elem()))
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		return false
	}
	return true
}
