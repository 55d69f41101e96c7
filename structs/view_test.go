package structs

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The views of the data model, in testdata/views.golden: a row a field with its name in the api view (encoding/json),
// the parse view (ParseView) and the wire view (CBOR, on the wire and in raft). "-" is a field that is not there,
// "?" one that may be left out when it is empty, "null" one that is there and says nothing.

// viewRoots are the objects whose views are fixed.
func viewRoots() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[Job](), reflect.TypeFor[Allocation](), reflect.TypeFor[Node](), reflect.TypeFor[Evaluation](),
		reflect.TypeFor[Deployment](), reflect.TypeFor[AllocationListStub](), reflect.TypeFor[JobListStub](),
		reflect.TypeFor[NodeListStub](),
	}
}

// reachable gives all structs of the data model that the roots hold, by name.
func reachable() map[string]reflect.Type {
	found := map[string]reflect.Type{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(t.Elem())
		case reflect.Map:
			visit(t.Elem())
		case reflect.Struct:
			if t == reflect.TypeFor[time.Time]() || found[t.Name()] != nil {
				return
			}
			found[t.Name()] = t
			for i := range t.NumField() {
				visit(t.Field(i).Type)
			}
		}
	}
	for _, t := range viewRoots() {
		visit(t)
	}
	return found
}

// tagName gives the name of a field by a tag like those of encoding/json.
func tagName(field reflect.StructField, tags ...string) string {
	for _, tag := range tags {
		value, ok := field.Tag.Lookup(tag)
		if !ok {
			continue
		}
		if value == "-" {
			return "-"
		}
		name, options, _ := strings.Cut(value, ",")
		if name == "" {
			name = field.Name
		}
		if strings.Contains(options, "omit") {
			name += "?"
		}
		return name
	}
	return field.Name
}

func parseName(field reflect.StructField) string {
	if tag := field.Tag.Get("parse"); tag != "" {
		return tag
	}
	return field.Name
}

// jobParts are the structs that the parse view can hold.
func jobParts() map[string]bool {
	parts := map[string]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(t.Elem())
		case reflect.Struct:
			if parts[t.Name()] || t == reflect.TypeFor[time.Time]() {
				return
			}
			parts[t.Name()] = true
			for i := range t.NumField() {
				if tag := t.Field(i).Tag.Get("parse"); tag != "null" && tag != "-" {
					visit(t.Field(i).Type)
				}
			}
		}
	}
	visit(reflect.TypeFor[Job]())
	return parts
}

func TestViews(t *testing.T) {
	types, parts := reachable(), jobParts()
	var b strings.Builder
	b.WriteString("# field api parse wire; written by: go test ./structs -run TestViews -update\n")
	for _, name := range slices.Sorted(maps.Keys(types)) {
		typ := types[name]
		for i := range typ.NumField() {
			f := typ.Field(i)
			parse := "-"
			if parts[name] {
				parse = parseName(f)
			}
			fmt.Fprintf(&b, "%s.%s %s %s %s\n", name, f.Name, tagName(f, "json"), parse, tagName(f, "cbor", "json"))
		}
	}
	golden(t, "testdata/views.golden", b.String())
}

// fact is a row of testdata/api-fields.tsv, a part of the facts of the public interface: names and JSON types.
type fact struct{ object, field, jsonType string }

func readFacts(t *testing.T) []fact {
	t.Helper()
	file, err := os.Open("testdata/api-fields.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var facts []fact
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(lines.Text(), "\t")
		if len(cells) != 3 {
			t.Fatalf("a row of facts has %d cells", len(cells))
		}
		facts = append(facts, fact{cells[0], cells[1], cells[2]})
	}
	return facts
}

// differentOnPurpose are fields of the facts which the api view has in another way.
func differentOnPurpose() map[string]string {
	return map[string]string{
		"JobUILink.URL": "servers answer with Url; every reader takes names in any case",
	}
}

// ownFields are those that the public interface does not have.
func ownFields() []string {
	return []string{
		"Allocation.ObservedStatus", "Allocation.Condition", "Allocation.Awaits", "Allocation.Fenced", "DesiredTransition.KillTimeout", "Service.Namespace",
		"DrainSpec.NoShutdownDelay", "DrainSpec.KillTimeout", "Node.Lease", "Node.MaxKillTimeout", "Node.Maintenance",
		"NodeListStub.Maintenance", "AllocationMetric.Missing", "PlanAnnotations.Reasons", "AllocationListStub.Condition",
	}
}

func TestViewsAgreeWithTheFactsOfThePublicInterface(t *testing.T) {
	types := reachable()
	known := map[string]bool{}
	for _, f := range readFacts(t) {
		id := f.object + "." + f.field
		known[id] = true
		typ := types[f.object]
		if typ == nil {
			t.Errorf("%s: no type", id)
			continue
		}
		field, ok := lookupJSON(typ, f.field)
		if !ok {
			if differentOnPurpose()[id] == "" {
				t.Errorf("%s: not in the api view", id)
			}
			continue
		}
		want, _, _ := strings.Cut(f.jsonType, "[") // the facts name the Go type behind some texts
		if got, want := jsonType(field.Type), strings.TrimSuffix(want, "?"); strings.TrimSuffix(got, "?") != want {
			t.Errorf("%s: the type is %s, the facts say %s", id, got, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if name == "Condition" || name == "AwaitedAlloc" || name == "NodeMaintenance" || name == "PlannedUpdate" || name == "ConsulMeshConfigEntry" {
			continue // all are ours but the last, which has no fields
		}
		typ := types[name]
		for i := range typ.NumField() {
			f := typ.Field(i)
			id := name + "." + strings.TrimSuffix(tagName(f, "json"), "?")
			if strings.HasSuffix(id, ".-") || f.Anonymous || known[id] || slices.Contains(ownFields(), id) {
				continue
			}
			if differentOnPurpose()[name+"."+f.Name] == "" {
				t.Errorf("%s: the facts do not know it", id)
			}
		}
	}
}

// lookupJSON finds the field with a name in the api view, in embedded structs too.
func lookupJSON(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && strings.TrimSuffix(tagName(f, "json"), "?") == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// jsonType names a type as the facts do.
func jsonType(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "string(rfc3339)"
	case reflect.TypeFor[time.Duration]():
		return "number(duration-ns)"
	case reflect.TypeFor[[]byte]():
		return "string(base64)"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem()) + "?"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Slice:
		return "array<" + jsonType(t.Elem()) + ">"
	case reflect.Map:
		return "map<" + jsonType(t.Key()) + "," + jsonType(t.Elem()) + ">"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		return "object(" + t.Name() + ")"
	default:
		return "number(" + t.Kind().String() + ")"
	}
}
