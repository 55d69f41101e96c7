package structs

import (
	"reflect"
	"slices"
)

// specServerFields are the fields of a Job that the servers write; they do not make a new version.
var specServerFields = []string{
	"Status", "StatusDescription", "Stable", "Version", "SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex",
	"VersionTag", "NomadTokenID",
}

// specPolicyFields are the fields of a ScalingPolicy that the servers write.
var specPolicyFields = []string{"ID", "CreateIndex", "ModifyIndex"}

// SpecEqual says whether two jobs are the same as their users wrote them. Both must be canonical. Stop counts, so
// that a stopped job which is run again becomes a new version.
func (j *Job) SpecEqual(other *Job) bool {
	if j == nil || other == nil {
		return j == other
	}
	return specEqual(reflect.ValueOf(j).Elem(), reflect.ValueOf(other).Elem())
}

// specEqual is deep equality in which nil and empty lists and maps are the same, as they are to a user.
func specEqual(a, b reflect.Value) bool {
	if a.IsValid() && a.Kind() == reflect.Interface {
		a = a.Elem()
	}
	if b.IsValid() && b.Kind() == reflect.Interface {
		b = b.Elem()
	}
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Kind() != b.Kind() {
		return numberEqual(a, b)
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return specEqual(a.Elem(), b.Elem())
	case reflect.Struct:
		return specEqualStruct(a, b)
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !specEqual(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for iter := a.MapRange(); iter.Next(); {
			v := b.MapIndex(iter.Key())
			if !v.IsValid() || !specEqual(iter.Value(), v) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

func specEqualStruct(a, b reflect.Value) bool {
	var skip []string
	switch a.Interface().(type) {
	case Job:
		skip = specServerFields
	case ScalingPolicy:
		skip = specPolicyFields
	}
	for i := range a.NumField() {
		if slices.Contains(skip, a.Type().Field(i).Name) {
			continue
		}
		if !specEqual(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

// numberEqual compares numbers of different types by value: a driver's config comes from JSON with floats and from
// a jobspec with integers.
func numberEqual(a, b reflect.Value) bool {
	switch {
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int()
	case a.CanFloat() && b.CanFloat():
		return a.Float() == b.Float()
	case a.CanInt() && b.CanFloat():
		return float64(a.Int()) == b.Float()
	case a.CanFloat() && b.CanInt():
		return a.Float() == float64(b.Int())
	}
	return false
}
