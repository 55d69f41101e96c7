package jobspec_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// fieldRow is one name of the language with the member of the public API's object that it sets.
type fieldRow struct{ object, field, typ, name, kind string }

// fieldRows are all of them that a jobspec can reach, by object.
func fieldRows(t *testing.T) map[string][]fieldRow {
	t.Helper()
	raw, err := os.ReadFile("testdata/fields.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]fieldRow{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n")[1:] {
		f := strings.Split(line, "\t")
		rows[f[0]] = append(rows[f[0]], fieldRow{f[0], f[1], f[2], f[3], f[4]})
	}
	return rows
}

// step is one block on the way to a place.
type step struct {
	field       string // of the object around it
	block       string
	label       string
	object      string // what the block is
	requirement string // what must be written in it
}

// fieldTest walks from the job through all blocks.
type fieldTest struct {
	t    *testing.T
	rows map[string][]fieldRow
	seen map[fieldRow]bool
}

// TestEveryFieldCanBeSet sets each block and each attribute of the language, at each place where it may stand, in a
// jobspec of its own and looks for it in the decoded job.
func TestEveryFieldCanBeSet(t *testing.T) {
	f := &fieldTest{t: t, rows: fieldRows(t), seen: map[fieldRow]bool{}}
	f.walk(reflect.TypeFor[structs.Job](), []step{{block: "job", label: "the-job", object: "Job"}})
	rows := 0
	for _, list := range f.rows {
		for _, row := range list {
			rows++
			if !f.seen[row] {
				t.Errorf("%s.%s (%s) was not reached", row.object, row.field, row.name)
			}
		}
	}
	if rows != 418 {
		t.Errorf("only %d rows", rows)
	}
}

func (f *fieldTest) walk(typ reflect.Type, path []step) {
	here := path[len(path)-1]
	if len(f.rows[here.object]) == 0 && typ.NumField() > 0 {
		f.t.Errorf("no rows for %s", here.object)
	}
	for _, row := range f.rows[here.object] {
		f.seen[row] = true
		member, ok := typ.FieldByName(row.field)
		if !ok {
			f.t.Errorf("%s has no member %s", typ, row.field)
			continue
		}
		elem := elementOf(member.Type)
		switch {
		case row.kind == "label":
			f.check(path, row, "", here.label)
		case row.kind == "attribute":
			text, want := valueFor(member.Type)
			f.check(path, row, row.name+" = "+text, want)
		case elem.Kind() == reflect.Struct:
			next := blockStep(row, elem, path)
			f.check(append(path[:len(path):len(path)], next), fieldRow{}, "", nil)
			f.walk(elem, append(path[:len(path):len(path)], next))
		default: // a map
			text, want := mapFor(member.Type)
			f.check(path, row, row.name+" {\n"+text+"\n}", want)
		}
	}
}

// elementOf is what a block of a member's type is decoded into.
func elementOf(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ
}

func blockStep(row fieldRow, elem reflect.Type, path []step) step {
	s := step{field: row.field, block: row.name, object: elem.Name()}
	switch s.object {
	case "TaskGroup", "Task", "Port", "VolumeRequest", "RequestedDevice", "Action", "Secret", "SpreadTarget", "MultiregionRegion",
		"ConsulGatewayBindAddress":
		s.label = "the-label"
	}
	switch {
	case s.object == "ScalingPolicy":
		s.requirement = "max = 9"
		if path[len(path)-1].object == "Task" {
			s.label = "cpu"
		}
	case s.object == "Action":
		s.requirement = `command = "required"`
	case s.object == "TaskLifecycle":
		s.requirement = `hook = "required"`
	case s.object == "WorkloadIdentity" && path[len(path)-1].object == "Task":
		s.requirement = `name = "named"` // one without a name is the default identity
	case row.name == "reserved_ports":
		s.block, s.requirement = "port", "static = 9"
	}
	return s
}

// valueFor gives a value of a type, as the language writes it and as it must be decoded.
func valueFor(typ reflect.Type) (string, any) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == reflect.TypeFor[time.Duration]():
		return `"7s"`, 7 * time.Second
	case typ.Kind() == reflect.String:
		return `"value"`, "value"
	case typ.Kind() == reflect.Bool:
		return "true", true
	case typ.Kind() == reflect.Slice:
		text, want := valueFor(typ.Elem())
		list := reflect.MakeSlice(typ, 0, 1)
		return "[" + text + "]", reflect.Append(list, reflect.ValueOf(want).Convert(typ.Elem())).Interface()
	case typ.Kind() == reflect.Map:
		text, want := valueFor(typ.Elem())
		m := reflect.MakeMap(typ)
		m.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf(want))
		return "{ key = " + text + " }", m.Interface()
	case typ.Kind() == reflect.Interface:
		return `"value"`, "value"
	}
	return "7", reflect.ValueOf(7).Convert(typ).Interface()
}

func mapFor(typ reflect.Type) (string, any) {
	text, want := valueFor(typ.Elem())
	m := reflect.MakeMap(typ)
	m.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf(want))
	return "key = " + text, m.Interface()
}

// check parses a job with the blocks of path around text and compares the member of the innermost block, or only looks
// whether the block is there when row is empty.
func (f *fieldTest) check(path []step, row fieldRow, text string, want any) {
	f.t.Helper()
	var body strings.Builder
	for i, s := range path {
		fmt.Fprintf(&body, "%s ", s.block)
		if s.label != "" {
			fmt.Fprintf(&body, "%q ", s.label)
		}
		body.WriteString("{\n")
		last := i == len(path)-1
		if name, _, _ := strings.Cut(s.requirement, " "); name != "" && !(last && name == row.name) {
			body.WriteString(s.requirement + "\n")
		}
	}
	body.WriteString(text + strings.Repeat("\n}", len(path)) + "\n")
	result, err := jobspec.Parse(jobspec.Config{Body: []byte(body.String())})
	if err != nil {
		f.t.Errorf("%s\n%s", body.String(), err)
		return
	}
	at := reflect.ValueOf(result.Job).Elem()
	for _, s := range path[1:] {
		field := s.field
		if s.field == "DynamicPorts" && row.name == "static" {
			field = "ReservedPorts" // that is what a static port is
		}
		if at = inner(at.FieldByName(field), s.label); !at.IsValid() {
			f.t.Errorf("%s\nhas no %s", body.String(), s.field)
			return
		}
	}
	if row.field == "" {
		return
	}
	got := at.FieldByName(row.field)
	if got.Kind() == reflect.Pointer && !got.IsNil() {
		got = got.Elem()
	}
	if at.Type() == reflect.TypeFor[structs.ScalingPolicy]() && row.field == "Type" && path[len(path)-2].object == "TaskGroup" {
		want = "horizontal" // there is no other for a group, whatever is written
	}
	if !reflect.DeepEqual(got.Interface(), want) {
		f.t.Errorf("%s\n%s is %v, want %v", body.String(), row.field, got.Interface(), want)
	}
}

// inner gives the block in a member: what it points to, the only element of a list, the one with the label of a map.
func inner(v reflect.Value, label string) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return reflect.Value{}
		}
		return inner(v.Elem(), label)
	case reflect.Slice:
		if v.Len() != 1 {
			return reflect.Value{}
		}
		return inner(v.Index(0), label)
	case reflect.Map:
		found := v.MapIndex(reflect.ValueOf(label))
		if !found.IsValid() {
			return found
		}
		return inner(found, label)
	}
	return v
}
