package jobspec

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// field is one member of a struct as its hcl tag describes it.
type field struct {
	name  string
	index int
	typ   reflect.Type
}

// schema is what a struct's hcl tags allow in its block.
type schema struct {
	typ    reflect.Type
	attrs  map[string]field
	blocks map[string]field
	label  *field // the block's one label
	// idle are blocks which the language takes and which have no effect, with what to write instead.
	idle map[string]string
}

var durationType = reflect.TypeFor[time.Duration]()

// schemaOf reads the hcl tags of t.
func schemaOf(t reflect.Type) *schema {
	s := &schema{typ: t, attrs: map[string]field{}, blocks: map[string]field{}}
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("hcl")
		if !ok {
			continue
		}
		name, kind, _ := strings.Cut(tag, ",")
		f := field{name: name, index: i, typ: t.Field(i).Type}
		switch kind {
		case "label":
			s.label = &f
		case "block":
			s.blocks[name] = f
		default:
			s.attrs[name] = f
		}
	}
	extend(s)
	return s
}

// extend changes the schema where the language differs from the data model.
func extend(s *schema) {
	switch s.typ {
	case reflect.TypeFor[structs.Job]():
		s.attrs["id"], s.attrs["name"] = s.field("ID"), s.field("Name")
	case reflect.TypeFor[structs.NetworkResource]():
		delete(s.blocks, "reserved_ports") // ports with a static value go there by themselves
		s.idle = map[string]string{"reserved_ports": `write port "NAME" { static = NUMBER }`}
	}
}

func (s *schema) field(goName string) field {
	f, _ := s.typ.FieldByName(goName)
	return field{name: strings.ToLower(goName), index: f.Index[0], typ: f.Type}
}

func (s *schema) names(extra ...string) []string {
	names := append([]string(nil), extra...)
	for n := range s.attrs {
		names = append(names, n)
	}
	for n := range s.blocks {
		names = append(names, n)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mapOrBlock are the members which may be written as a block or as a map.
func mapOrBlock(t reflect.Type, name string) bool {
	switch t {
	case reflect.TypeFor[structs.Job](), reflect.TypeFor[structs.TaskGroup]():
		return name == "meta"
	case reflect.TypeFor[structs.Task]():
		return name == "meta" || name == "env"
	}
	return false
}

// required names what must be written in a block of type t, which is i.
func required(t reflect.Type, i instance) []string {
	switch t {
	case reflect.TypeFor[structs.Action]():
		return []string{"command"}
	case reflect.TypeFor[structs.TaskLifecycle]():
		return []string{"hook"}
	case reflect.TypeFor[structs.ScalingPolicy]():
		if !i.ofTask { // there the policy may do without
			return []string{"max"}
		}
	}
	return nil
}
