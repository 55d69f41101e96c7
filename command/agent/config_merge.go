package agent

import "reflect"

// Merge gives base with everything that over says on top: single values replace, maps gain keys, blocks merge, lists of
// blocks and of join addresses grow. Neither argument is changed.
func Merge(base, over *Config) *Config {
	out := reflect.New(reflect.TypeFor[Config]())
	mergeInto(out.Elem(), reflect.ValueOf(base).Elem())
	mergeInto(out.Elem(), reflect.ValueOf(over).Elem())
	return out.Interface().(*Config)
}

func mergeInto(dst, src reflect.Value) {
	for i := range dst.NumField() {
		d, s := dst.Field(i), src.Field(i)
		switch s.Kind() {
		case reflect.Pointer:
			if s.IsNil() {
				continue
			}
			if s.Type().Elem().Kind() != reflect.Struct {
				d.Set(s)
				continue
			}
			fresh := reflect.New(s.Type().Elem())
			if !d.IsNil() {
				mergeInto(fresh.Elem(), d.Elem())
			}
			mergeInto(fresh.Elem(), s.Elem())
			d.Set(fresh)
		case reflect.Map:
			if s.Len() == 0 {
				continue
			}
			merged := reflect.MakeMap(s.Type())
			for _, from := range []reflect.Value{d, s} {
				for it := from.MapRange(); it.Next(); {
					merged.SetMapIndex(it.Key(), it.Value())
				}
			}
			d.Set(merged)
		case reflect.Slice:
			if s.Len() == 0 {
				continue
			}
			joined := reflect.MakeSlice(s.Type(), 0, d.Len()+s.Len())
			d.Set(reflect.AppendSlice(reflect.AppendSlice(joined, d), s))
		default:
			if !s.IsZero() {
				d.Set(s)
			}
		}
	}
}
