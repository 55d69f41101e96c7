package structs

import (
	"fmt"
	"reflect"
	"testing"
)

// populate fills everything that v holds: lists and maps of pointers get a nil element and one that is filled.
func populate(v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		populate(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				populate(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Pointer && v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		list := reflect.MakeSlice(v.Type(), 2, 2)
		populate(list.Index(1), depth+1)
		v.Set(list)
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.Pointer || v.Type().Key().Kind() != reflect.String {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("nil").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		filled := reflect.New(v.Type().Elem()).Elem()
		populate(filled, depth+1)
		v.SetMapIndex(reflect.ValueOf("filled").Convert(v.Type().Key()), filled)
	}
}

// nilElements lists where v holds nil elements of lists and maps.
func nilElements(path string, v reflect.Value, found *[]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			nilElements(path, v.Elem(), found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				nilElements(path+"."+v.Type().Field(i).Name, v.Field(i), found)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if e := v.Index(i); e.Kind() == reflect.Pointer && e.IsNil() {
				*found = append(*found, path+"[]")
			} else {
				nilElements(path+"[]", e, found)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if e := v.MapIndex(k); e.Kind() == reflect.Pointer && e.IsNil() {
				*found = append(*found, path+"{}")
			} else {
				nilElements(path+"{}", e, found)
			}
		}
	}
}

// TestACanonicalJobHoldsNoNilElements: a request body can say null anywhere, and whoever works with a job later
// dereferences what its lists hold. A nil value in a map stays where Validate refuses it.
func TestACanonicalJobHoldsNoNilElements(t *testing.T) {
	job := &Job{}
	populate(reflect.ValueOf(job).Elem(), 0)
	job.Canonicalize()
	var found []string
	nilElements("Job", reflect.ValueOf(job), &found)
	for _, path := range found {
		if path == "Job.TaskGroups[].Volumes{}" {
			continue // refused: "volume is empty"
		}
		t.Error(path)
	}
	_ = fmt.Sprint(job.Validate(), job.Warnings()) // of what is left nothing panics
}
