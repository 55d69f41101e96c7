package structs

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// ParseView is a job as its jobspec says it, in the form {"Job": {...}} that `job run -output` prints: what the user
// left out is null, what only servers write is null too, and every other member is there. The names are those of the
// Go fields; the tag parse names another one, "null" a member that is always null, "-" one that is not there.
func ParseView(j *Job) ([]byte, error) {
	view := map[string]any{"Job": parseView(reflect.ValueOf(j))}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	if err := enc.Encode(view); err != nil {
		return nil, Errorf(CodeInternal, "encode job: %w", err)
	}
	return buf.Bytes(), nil
}

// parseView turns a value into what encoding/json prints as the parse view.
func parseView(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return parseView(v.Elem())
	case reflect.Struct:
		return parseStruct(v)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Bytes()
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = parseView(v.Index(i))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		m := make(map[string]any, v.Len())
		for iter := v.MapRange(); iter.Next(); {
			m[iter.Key().String()] = parseView(iter.Value())
		}
		return m
	case reflect.Invalid:
		return nil
	default:
		return v.Interface()
	}
}

func parseStruct(v reflect.Value) any {
	m := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch tag := field.Tag.Get("parse"); tag {
		case "-":
		case "null":
			m[field.Name] = nil
		case "":
			m[field.Name] = parseView(v.Field(i))
		default:
			m[tag] = parseView(v.Field(i))
		}
	}
	return m
}
