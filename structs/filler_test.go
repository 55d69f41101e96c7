package structs

import (
	"fmt"
	"reflect"
	"time"
)

// filler gives every field of a value a content of its own, so that a forgotten field shows.
type filler struct {
	n     int
	depth int
	text  string // appended to each text
}

func (f *filler) next() int {
	f.n++
	return f.n
}

func (f *filler) fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(int64(f.next())*1000, 123456789).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.depth > 12 {
			return
		}
		f.depth++
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
		f.depth--
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{
			fmt.Sprintf("k%d", f.next()): []any{"x", 1.5, true, nil, map[string]any{"y": int64(f.next())}},
			"strings":                    []string{"a"}, "bytes": []byte{1}, "map": map[string]string{"a": "b"},
			"maps": []map[string]any{{"z": "z"}},
		}))
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d%s", f.next(), f.text))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16:
		v.SetInt(int64(f.next()))
	case reflect.Int8:
		v.SetInt(int64(f.next()%100 + 1))
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16:
		v.SetUint(uint64(f.next()))
	case reflect.Uint8:
		v.SetUint(uint64(f.next()%200 + 1))
	case reflect.Float64:
		v.SetFloat(float64(f.next()) + 0.5)
	default:
		panic("cannot fill " + v.Type().String())
	}
}

// filled gives a value of which every field is set.
func filled[T any](text string) *T {
	v := new(T)
	(&filler{text: text}).fill(reflect.ValueOf(v).Elem())
	return v
}
