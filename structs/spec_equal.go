package structs

import (
	"maps"
	"reflect"
)

// SpecEqual says whether two jobs are the same as their users wrote them: what servers write is left out, and so is
// whether something empty was written or not. Both must be canonical. Stop counts, so that a stopped job which is run
// again becomes a new version, and so does the order of blocks. DiffJobs finds a difference if and only if SpecEqual
// does not hold.
func (j *Job) SpecEqual(other *Job) bool {
	if j == nil || other == nil {
		return j == other
	}
	return specEqual(reflect.ValueOf(j).Elem(), reflect.ValueOf(other).Elem())
}

// specEqual compares two values of one type.
func specEqual(a, b reflect.Value) bool {
	switch kindOf(a.Type()) {
	case kindBlock:
		a, b = indirect(a), indirect(b)
		if !a.IsValid() || !b.IsValid() {
			return a.IsValid() == b.IsValid()
		}
		return specEqualStruct(a, b)
	case kindBlocks:
		if a.Kind() == reflect.Map {
			return specEqualMap(a, b)
		}
		return specEqualList(elements(a), elements(b))
	case kindTexts, kindFree:
		return sameFlat(a, b)
	case kindList:
		return specEqualList(elements(a), elements(b))
	}
	a, b = indirect(a), indirect(b)
	if a.IsValid() && b.IsValid() && a.Comparable() {
		return a.Equal(b)
	}
	return diffText(a) == diffText(b) // bytes, or what is missing and may be as good as empty
}

// sameFlat compares values of free form. Numbers are equal by value: a driver's config comes from JSON with floats and
// from a jobspec with integers.
func sameFlat(a, b reflect.Value) bool {
	if a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return maps.Equal(flatten("", a), flatten("", b))
}

func specEqualList(a, b []reflect.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !specEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

func specEqualMap(a, b reflect.Value) bool {
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
}

func specEqualStruct(a, b reflect.Value) bool {
	t := a.Type()
	for i := range t.NumField() {
		switch diffRules[t.Name()+"."+t.Field(i).Name].skip {
		case "", skipName, skipOwn:
			if !specEqual(a.Field(i), b.Field(i)) {
				return false
			}
		}
	}
	return true
}
