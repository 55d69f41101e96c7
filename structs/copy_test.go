package structs

import (
	"reflect"
	"testing"
)

// copyCase is one type with a Copy method.
type copyCase struct {
	name     string
	original any
	copied   any
	null     any // the copy of nil
	shared   map[string]bool
}

func copyOf[T any, P interface {
	*T
	Copy() *T
}](shared ...string) copyCase {
	c := copyCase{original: filled[T](""), shared: map[string]bool{}}
	c.name = reflect.TypeFor[T]().Name()
	c.copied = P(c.original.(*T)).Copy()
	c.null = P(nil).Copy()
	for _, s := range shared {
		c.shared[s] = true
	}
	return c
}

func TestCopyIsEqualAndSharesNothing(t *testing.T) {
	for _, c := range []copyCase{
		copyOf[Job](), copyOf[TaskGroup](), copyOf[Task](), copyOf[Allocation]("Allocation.Job"), copyOf[Node](),
		copyOf[Evaluation](), copyOf[Deployment](), copyOf[JobSummary](), copyOf[JobSubmission](), copyOf[Namespace](),
		copyOf[NodePool](), copyOf[RootKey](), copyOf[SchedulerConfiguration](), copyOf[DesiredTransition](),
		copyOf[AllocationListStub](), copyOf[TaskState](),
	} {
		t.Run(c.name, func(t *testing.T) {
			if !reflect.DeepEqual(c.original, c.copied) {
				t.Error("the copy differs")
			}
			if !reflect.ValueOf(c.null).IsNil() {
				t.Error("the copy of nil is not nil")
			}
			sharing(t, reflect.ValueOf(c.original), reflect.ValueOf(c.copied), c.name, c.shared)
		})
	}
	if (*NodeUsage)(nil).Copy() == nil {
		t.Error("the copy of no usage is not an empty one")
	}
}

// sharing tells every pointer, slice and map that two values have in common.
func sharing(t *testing.T, a, b reflect.Value, path string, shared map[string]bool) {
	if shared[path] {
		return
	}
	switch a.Kind() {
	case reflect.Interface:
		if !a.IsNil() {
			sharing(t, a.Elem(), b.Elem(), path, shared)
		}
	case reflect.Pointer:
		if a.IsNil() {
			return
		}
		if a.Pointer() == b.Pointer() && a.Type().Elem().Size() > 0 {
			t.Errorf("%s is shared", path)
			return
		}
		sharing(t, a.Elem(), b.Elem(), path, shared)
	case reflect.Struct:
		if a.Type().PkgPath() == "time" {
			return
		}
		for i := range a.NumField() {
			sharing(t, a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name, shared)
		}
	case reflect.Slice:
		if a.Len() == 0 {
			return
		}
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
			return
		}
		for i := range a.Len() {
			sharing(t, a.Index(i), b.Index(i), path+"[]", shared)
		}
	case reflect.Map:
		if a.Len() == 0 {
			return
		}
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
			return
		}
		for iter := a.MapRange(); iter.Next(); {
			sharing(t, iter.Value(), b.MapIndex(iter.Key()), path+"{}", shared)
		}
	}
}

// TestCopyKeepsNilAndEmptyApart matters since the two differ in JSON.
func TestCopyKeepsNilAndEmptyApart(t *testing.T) {
	for _, task := range []*Task{
		{},
		{
			Config: map[string]any{}, Env: map[string]string{}, Services: []*Service{}, Templates: []*Template{},
			Constraints: []*Constraint{nil},
		},
	} {
		if c := task.Copy(); !reflect.DeepEqual(c, task) {
			t.Errorf("want %+v, got %+v", task, c)
		}
	}
}
