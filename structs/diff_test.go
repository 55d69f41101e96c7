package structs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// told gives every difference in d, as one line each.
func told(d *JobDiff) []string {
	var out []string
	line := func(path, kind, old, new string) {
		if kind != DiffTypeNone {
			out = append(out, fmt.Sprintf("%s %s: %q => %q", kind, path, old, new))
		}
	}
	fields := func(path string, list []*FieldDiff) {
		for _, f := range list {
			line(path+f.Name, f.Type, f.Old, f.New)
		}
	}
	var objects func(path string, list []*ObjectDiff)
	objects = func(path string, list []*ObjectDiff) {
		for _, o := range list {
			if len(o.Fields)+len(o.Objects) == 0 {
				line(path+o.Name, o.Type, "", "")
			}
			fields(path+o.Name+".", o.Fields)
			objects(path+o.Name+".", o.Objects)
		}
	}
	fields("", d.Fields)
	objects("", d.Objects)
	for _, g := range d.TaskGroups {
		fields(g.Name+".", g.Fields)
		objects(g.Name+".", g.Objects)
		for _, task := range g.Tasks {
			fields(g.Name+"."+task.Name+".", task.Fields)
			objects(g.Name+"."+task.Name+".", task.Objects)
		}
	}
	return out
}

func diffOf(t testing.TB, old, new *Job, contextual bool) *JobDiff {
	t.Helper()
	d, err := DiffJobs(old, new, contextual)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// leaf is one value of the data model which a test changes.
type leaf struct {
	name   string // Type.Field
	change func(v reflect.Value)
	reach  func(root reflect.Value) reflect.Value
}

// leaves finds each field of each struct below v once.
func leaves(v reflect.Value, seen map[string]bool, reach func(reflect.Value) reflect.Value) []leaf {
	var out []leaf
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			out = append(out, leaves(v.Elem(), seen, func(r reflect.Value) reflect.Value { return reach(r).Elem() })...)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 && v.Len() > 0 {
			out = append(out, leaves(v.Index(0), seen, func(r reflect.Value) reflect.Value { return reach(r).Index(0) })...)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Pointer {
			key := v.MapKeys()[0]
			out = append(out, leaves(v.MapIndex(key), seen, func(r reflect.Value) reflect.Value { return reach(r).MapIndex(key) })...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			at := func(r reflect.Value) reflect.Value { return reach(r).Field(i) }
			if !seen[name] {
				seen[name] = true
				out = append(out, leaf{name: name, reach: at, change: alter})
			}
			out = append(out, leaves(v.Field(i), seen, at)...)
		}
	}
	return out
}

// single leaves one element in each list and map, so that there is less to compare.
func single(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			single(v.Elem())
		}
	case reflect.Slice:
		if v.Len() > 1 {
			v.Set(v.Slice(0, 1))
		}
		for i := range v.Len() {
			single(v.Index(i))
		}
	case reflect.Map:
		for i, key := range v.MapKeys() {
			if i > 0 {
				v.SetMapIndex(key, reflect.Value{})
			} else if v.Type().Elem().Kind() == reflect.Pointer {
				single(v.MapIndex(key))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			single(v.Field(i))
		}
	}
}

// alter gives v another value.
func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.SetZero() // without the block
			return
		}
		fresh := reflect.New(v.Type().Elem())
		fresh.Elem().Set(v.Elem())
		alter(fresh.Elem())
		v.Set(fresh)
	case reflect.String:
		v.SetString(v.String() + " changed")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(v.Slice(0, v.Len()-1)) // one element less
	case reflect.Map:
		v.SetMapIndex(v.MapKeys()[0], reflect.Value{})
	default:
		switch {
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint(v.Uint() + 1)
		}
	}
}

func TestDiffTellsEveryFieldOfTheDataModel(t *testing.T) {
	base := filled[Job]("")
	single(reflect.ValueOf(base))
	all := leaves(reflect.ValueOf(base).Elem(), map[string]bool{}, func(r reflect.Value) reflect.Value { return r })
	if len(all) < 350 {
		t.Fatalf("only %d fields were found", len(all))
	}
	left := map[string]bool{}
	for name, rule := range diffRules {
		if rule.skip != "" && rule.skip != skipOwn && rule.skip != skipName {
			left[name] = true
		}
	}
	for _, l := range all {
		changed := base.Copy()
		l.change(l.reach(reflect.ValueOf(changed).Elem()))
		if reflect.DeepEqual(base, changed) {
			t.Errorf("%s: the test changed nothing", l.name)
			continue
		}
		if l.name == "Job.ID" {
			continue
		}
		d := diffOf(t, base, changed, false)
		lines := told(d)
		switch {
		case left[l.name] || strings.HasPrefix(l.name, "JobVersionTag."):
			if d.Type != DiffTypeNone || len(lines) > 0 {
				t.Errorf("%s is not the user's, but a difference: %s", l.name, lines)
			}
		case d.Type != DiffTypeEdited || len(lines) == 0:
			t.Errorf("%s changed and no difference is told", l.name)
		case !d.namesField(l.name):
			t.Errorf("%s changed, which is not named by %s", l.name, lines)
		}
		back := diffOf(t, changed, base, false)
		if len(told(back)) != len(lines) {
			t.Errorf("%s: %d differences one way, %d the other", l.name, len(lines), len(told(back)))
		}
	}
}

// namesField says whether a difference shows a name of the field.
func (d *JobDiff) namesField(name string) bool {
	_, field, _ := strings.Cut(name, ".")
	rule := diffRules[name]
	if rule.skip != "" { // the name of a group or task is shown by the group or task
		return true
	}
	if rule.name != "" {
		field = rule.name
	}
	text, _ := json.Marshal(d)
	return strings.Contains(string(text), field)
}

func TestDiffRulesAreAboutFieldsThatExist(t *testing.T) {
	seen := map[string]bool{}
	leaves(reflect.ValueOf(filled[Job]("")).Elem(), seen, func(r reflect.Value) reflect.Value { return r })
	for name := range diffRules {
		if !seen[name] {
			t.Errorf("there is a rule about %s, which is no field of a job", name)
		}
	}
}

func diffJob() *Job {
	j := &Job{ID: Ptr("web"), Name: Ptr("web"), Datacenters: []string{"dc1"}, TaskGroups: []*TaskGroup{{
		Name: Ptr("front"), Count: Ptr(2), Networks: []*NetworkResource{{DynamicPorts: []Port{{Label: "http"}}}},
		Services: []*Service{{Name: "front", PortLabel: "http", Provider: "nomad", Checks: []ServiceCheck{
			{Name: "alive", Type: "tcp", Interval: 10 * time.Second, Timeout: time.Second}}}},
		Tasks: []*Task{{Name: "nginx", Driver: "docker", Env: map[string]string{"A": "1"}, Config: map[string]any{
			"image": "nginx:1", "args": []any{"-g", "daemon off;"}, "port_map": []map[string]any{{"db": 6379}}}}},
	}}}
	j.Canonicalize()
	return j
}

func TestDiffShowsNamesAndValuesAsPublicToolsDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(j *Job)
		want   []string
	}{
		{"nothing", func(*Job) {}, nil},
		{"count", func(j *Job) { j.TaskGroups[0].Count = Ptr(3) }, []string{`Edited front.Count: "2" => "3"`}},
		{"meta", func(j *Job) { j.Meta = map[string]string{"owner": "me"} }, []string{`Added Meta[owner]: "" => "me"`}},
		{"empty env", func(j *Job) { j.TaskGroups[0].Tasks[0].Env["B"] = "" }, []string{`Added front.nginx.Env[B]: "" => ""`}},
		{"env", func(j *Job) { j.TaskGroups[0].Tasks[0].Env["A"] = "2" }, []string{`Edited front.nginx.Env[A]: "1" => "2"`}},
		{"image", func(j *Job) { j.TaskGroups[0].Tasks[0].Config["image"] = "nginx:2" },
			[]string{`Edited front.nginx.Config.image: "nginx:1" => "nginx:2"`}},
		{"args", func(j *Job) { j.TaskGroups[0].Tasks[0].Config["args"] = []any{"-g"} },
			[]string{`Deleted front.nginx.Config.args[1]: "daemon off;" => ""`}},
		{"port map", func(j *Job) { j.TaskGroups[0].Tasks[0].Config["port_map"] = []map[string]any{{"db": 1.0}} },
			[]string{`Edited front.nginx.Config.port_map[0][db]: "6379" => "1"`}},
		{"number of another type", func(j *Job) {
			j.TaskGroups[0].Tasks[0].Config["port_map"] = []any{map[string]any{"db": json.Number("6379")}}
		}, nil},
		{"duration", func(j *Job) { j.TaskGroups[0].Tasks[0].KillTimeout = Ptr(10 * time.Second) },
			[]string{`Edited front.nginx.KillTimeout: "5000000000" => "10000000000"`}},
		{"datacenter", func(j *Job) { j.Datacenters = []string{"dc1", "dc2"} }, []string{`Added Datacenters.Datacenters: "" => "dc2"`}},
		{"constraint", func(j *Job) {
			j.Constraints = []*Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "linux"}}
		}, []string{`Added Constraint.LTarget: "" => "${attr.kernel.name}"`, `Added Constraint.Operand: "" => "="`,
			`Added Constraint.RTarget: "" => "linux"`}},
		{"memory", func(j *Job) { j.TaskGroups[0].Tasks[0].Resources.MemoryMB = Ptr(512) },
			[]string{`Edited front.nginx.Resources.MemoryMB: "300" => "512"`}},
		{"check", func(j *Job) { j.TaskGroups[0].Services[0].Checks[0].Args = []string{"x"} },
			[]string{`Added front.Service.Check.Args.Args: "" => "x"`}},
		{"header", func(j *Job) { j.TaskGroups[0].Services[0].Checks[0].Header = map[string][]string{"Foo": {"bar"}} },
			[]string{`Added front.Service.Check.Header.Foo[0]: "" => "bar"`}},
		{"port", func(j *Job) { j.TaskGroups[0].Networks[0].DynamicPorts[0].To = 80 }, []string{
			`Deleted front.Network.Dynamic Port.HostNetwork: "default" => ""`, `Deleted front.Network.Dynamic Port.Label: "http" => ""`,
			`Added front.Network.Dynamic Port.HostNetwork: "" => "default"`, `Added front.Network.Dynamic Port.Label: "" => "http"`,
			`Added front.Network.Dynamic Port.To: "" => "80"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, changed := diffJob(), diffJob()
			c.change(changed)
			lines := slices.DeleteFunc(told(diffOf(t, old, changed, false)), zeroOrFalse)
			if !slices.Equal(lines, c.want) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// zeroOrFalse leaves out what an added or deleted block has by default.
func zeroOrFalse(line string) bool {
	return strings.Contains(line, `"" => "0"`) || strings.Contains(line, `"" => "false"`) ||
		strings.Contains(line, `"0" => ""`) || strings.Contains(line, `"false" => ""`)
}

func TestDiffOfWholeJobsGroupsAndTasks(t *testing.T) {
	old, changed := diffJob(), diffJob()
	if d := diffOf(t, nil, changed, true); d.Type != DiffTypeAdded || d.ID != "web" || d.TaskGroups[0].Type != DiffTypeAdded ||
		d.TaskGroups[0].Tasks[0].Type != DiffTypeAdded {
		t.Errorf("a new job: %+v", d)
	}
	if d := diffOf(t, old, nil, true); d.Type != DiffTypeDeleted || d.TaskGroups[0].Tasks[0].Type != DiffTypeDeleted {
		t.Errorf("no job any more: %+v", d)
	}
	if d := diffOf(t, nil, nil, true); d.Type != DiffTypeNone {
		t.Errorf("no jobs: %+v", d)
	}
	changed.TaskGroups[0].Name = Ptr("back")
	d := diffOf(t, old, changed, true)
	if len(d.TaskGroups) != 2 || d.TaskGroups[0].Name != "back" || d.TaskGroups[0].Type != DiffTypeAdded ||
		d.TaskGroups[1].Type != DiffTypeDeleted {
		t.Errorf("a group with another name: %+v", d.TaskGroups)
	}
	changed = diffJob()
	changed.ID = Ptr("other")
	if _, err := DiffJobs(old, changed, true); ErrorCode(err) != CodeInvalid {
		t.Errorf("two jobs: %v", err)
	}
}

func TestContextualDiffHoldsWhatDidNotChange(t *testing.T) {
	old, changed := diffJob(), diffJob()
	changed.TaskGroups[0].Tasks[0].Resources.CPU = Ptr(200)
	d := diffOf(t, old, changed, true)
	resources := d.TaskGroups[0].Tasks[0].Objects[0]
	i := slices.IndexFunc(resources.Fields, func(f *FieldDiff) bool { return f.Name == "MemoryMB" })
	if resources.Name != "Resources" || i < 0 || resources.Fields[i].Type != DiffTypeNone || resources.Fields[i].Old != "300" {
		t.Errorf("resources: %+v", resources)
	}
	if len(d.TaskGroups[0].Fields) > 0 || len(d.Fields) > 0 {
		t.Errorf("fields of the group %+v and of the job %+v, which did not change", d.TaskGroups[0].Fields, d.Fields)
	}
	if d = diffOf(t, old, diffJob(), true); d.Type != DiffTypeNone || len(d.TaskGroups) != 1 || d.TaskGroups[0].Type != DiffTypeNone ||
		len(d.TaskGroups[0].Tasks) != 1 {
		t.Errorf("nothing changed: %+v", d)
	}
	if d = diffOf(t, old, diffJob(), false); len(d.TaskGroups) != 0 {
		t.Errorf("nothing changed: %+v", d)
	}
}

func TestDiffTellsTheOrderOfLists(t *testing.T) {
	old, changed := diffJob(), diffJob()
	old.TaskGroups[0].Services[0].Checks[0].Args = []string{"a", "b", "a"}
	changed.TaskGroups[0].Services[0].Checks[0].Args = []string{"a", "a", "b"}
	want := []string{`Edited front.Service.Check.Args.Args[1]: "b" => "a"`, `Edited front.Service.Check.Args.Args[2]: "a" => "b"`}
	if lines := told(diffOf(t, old, changed, false)); !slices.Equal(lines, want) {
		t.Errorf("told %s", lines)
	}
}

func BenchmarkDiffOfTwoHundredGroups(b *testing.B) {
	old := diffJob()
	for i := range 200 {
		tg := old.TaskGroups[0].Copy()
		tg.Name = Ptr(fmt.Sprintf("group-%d", i))
		old.TaskGroups = append(old.TaskGroups, tg)
	}
	changed := old.Copy()
	for _, tg := range changed.TaskGroups {
		tg.Tasks[0].Config["image"] = "nginx:2"
	}
	for b.Loop() {
		diffOf(b, old, changed, true)
	}
}

// Jobs as servers keep them differ from nothing by what they hold, from themselves not at all, and from each other as
// often as SpecEqual says.
func TestDiffOfRecordedJobs(t *testing.T) {
	paths, err := filepath.Glob("testdata/server/*.registered.json")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d jobs, %v", len(paths), err)
	}
	read := func(path string, numbers bool) *Job {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		if numbers {
			d.UseNumber()
		}
		job := &Job{}
		if err := d.Decode(job); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		job.ID = Ptr("same") // jobs of different ids are not compared
		job.Canonicalize()
		return job
	}
	var jobs []*Job
	for _, path := range paths {
		job := read(path, false)
		jobs = append(jobs, job)
		if lines := told(diffOf(t, job, job.Copy(), false)); len(lines) > 0 {
			t.Errorf("%s differs from itself: %s", path, lines)
		}
		if lines := told(diffOf(t, job, read(path, true), false)); len(lines) > 0 {
			t.Errorf("%s differs from itself with exact numbers: %s", path, lines)
		}
		if d := diffOf(t, nil, job, true); d.Type != DiffTypeAdded || len(told(d)) < 5 {
			t.Errorf("%s differs from nothing by %s", path, told(d))
		}
	}
	for i, a := range jobs {
		for j, b := range jobs {
			if same := diffOf(t, a, b, false).Type == DiffTypeNone; same != a.SpecEqual(b) {
				t.Errorf("%s and %s: no difference is %t, the same specification is %t", paths[i], paths[j], same, !same)
			}
		}
	}
}

// What a hostile job holds by the ten thousands is compared without a look at each pair.
func TestDiffOfManyBlocks(t *testing.T) {
	many := func(from int) *Job {
		j := diffJob()
		for i := range 20000 {
			j.Constraints = append(j.Constraints, &Constraint{LTarget: fmt.Sprintf("${meta.m%d}", from+i), Operand: "is_set"})
		}
		return j
	}
	begin := time.Now()
	d := diffOf(t, many(0), many(10000), false)
	if took := time.Since(begin); len(d.Objects) != 20000 || took > 10*time.Second {
		t.Errorf("%d differences in %s", len(d.Objects), took)
	}
}
