package jobspec

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/nomadlite/nomadlite/structs"
)

// decoder fills the data model from blocks.
type decoder struct {
	root  *hcl.EvalContext
	meter *meter
	diags hcl.Diagnostics
	// lenient lets unknown values pass: their cause was told already.
	lenient bool
	// schemas are those of the types met so far.
	schemas map[reflect.Type]*schema
	// statics are the static ports of the network block that is being decoded.
	statics []structs.Port
}

// instance is one block after dynamic blocks were expanded.
type instance struct {
	typ    string
	labels []string
	body   *hclsyntax.Body
	ctx    *hcl.EvalContext
	rng    hcl.Range // of the block's head
	typRng hcl.Range
	ofTask bool // where a block may stand in groups and in tasks
}

func (d *decoder) add(diags ...*hcl.Diagnostic) { d.diags = append(d.diags, diags...) }

// job decodes the job block: its own tasks become groups, and vault blocks are handed down.
func (d *decoder) job(block *hclsyntax.Block) *structs.Job {
	job := &structs.Job{}
	if len(block.Labels) != 1 {
		rng := block.DefRange()
		if len(block.Labels) > 1 {
			rng = block.LabelRanges[1]
		}
		d.add(errorAt(rng, "A job has one name", `Write job "NAME" { ... }.`))
		return job
	}
	job.ID = structs.Ptr(block.Labels[0])
	inst := instance{typ: "job", labels: block.Labels, body: block.Body, ctx: d.root, rng: block.DefRange()}
	var tasks []*structs.Task
	var vaults []*structs.Vault
	d.body(inst, reflect.ValueOf(job).Elem(), extras{"task": func(i instance) {
		tasks = append(tasks, d.task(i))
	}, "vault": func(i instance) {
		v := &structs.Vault{}
		d.body(i, reflect.ValueOf(v).Elem(), nil)
		vaults = d.single(i, vaults, v)
	}, "group": func(i instance) {
		job.TaskGroups = append(job.TaskGroups, d.group(i))
	}})
	if job.Name == nil {
		job.Name = structs.Ptr(structs.Val(job.ID))
	}
	direct := make([]*structs.TaskGroup, len(tasks))
	for i, t := range tasks {
		direct[i] = &structs.TaskGroup{Name: structs.Ptr(t.Name), Tasks: []*structs.Task{t}}
	}
	job.TaskGroups = append(direct, job.TaskGroups...)
	if len(vaults) > 0 {
		for _, g := range job.TaskGroups {
			inheritVault(g.Tasks, vaults[0])
		}
	}
	if job.Periodic != nil && (job.Periodic.Spec != nil || len(job.Periodic.Specs) > 0) {
		job.Periodic.SpecType = structs.Ptr("cron")
	}
	return job
}

func inheritVault(tasks []*structs.Task, vault *structs.Vault) {
	for _, t := range tasks {
		if t.Vault == nil {
			own := *vault
			own.Policies = slices.Clone(vault.Policies)
			t.Vault = &own
		}
	}
}

func (d *decoder) single(i instance, have []*structs.Vault, v *structs.Vault) []*structs.Vault {
	if len(have) > 0 {
		d.add(errorAt(i.rng, "Duplicate vault block", "Only one vault block is allowed here."))
		return have
	}
	return append(have, v)
}

func (d *decoder) group(i instance) *structs.TaskGroup {
	g := &structs.TaskGroup{}
	var vaults []*structs.Vault
	d.body(i, reflect.ValueOf(g).Elem(), extras{"task": func(i instance) {
		g.Tasks = append(g.Tasks, d.task(i))
	}, "vault": func(i instance) {
		v := &structs.Vault{}
		d.body(i, reflect.ValueOf(v).Elem(), nil)
		vaults = d.single(i, vaults, v)
	}})
	if len(vaults) > 0 {
		inheritVault(g.Tasks, vaults[0])
	}
	if g.Scaling != nil {
		g.Scaling.Type = "horizontal"
	}
	return g
}

func (d *decoder) task(i instance) *structs.Task {
	t := &structs.Task{}
	d.body(i, reflect.ValueOf(t).Elem(), extras{"scaling": func(i instance) {
		t.ScalingPolicies = append(t.ScalingPolicies, d.taskScaling(i))
	}})
	kept := t.Identities[:0]
	for _, id := range t.Identities {
		if id.Name == "" && t.Identity == nil {
			t.Identity = id
			continue
		}
		kept = append(kept, id)
	}
	t.Identities = kept
	return t
}

func (d *decoder) taskScaling(i instance) *structs.ScalingPolicy {
	p := &structs.ScalingPolicy{}
	if len(i.labels) != 1 {
		d.add(errorAt(i.rng, "Missing label for scaling", `Write scaling "cpu" { ... } or scaling "mem" { ... } in a task.`))
		return p
	}
	switch i.labels[0] {
	case "cpu", "mem":
		p.Type = "vertical_" + i.labels[0]
	default:
		d.add(errorAt(i.rng, "Unknown kind of scaling", `%q is neither "cpu" nor "mem".`, i.labels[0]))
	}
	i.labels, i.ofTask = nil, true
	d.body(i, reflect.ValueOf(p).Elem(), nil)
	return p
}

func (d *decoder) schema(t reflect.Type) *schema {
	s, ok := d.schemas[t]
	if !ok {
		s = schemaOf(t)
		d.schemas[t] = s
	}
	return s
}

// extras decode blocks which the data model has elsewhere, by block type.
type extras map[string]func(instance)

// body decodes one block into the struct target.
func (d *decoder) body(i instance, target reflect.Value, more extras) {
	s := d.schema(target.Type())
	where := "in " + article(i.typ) + " block"
	d.label(i, s, target)
	seen := map[string]hcl.Range{}
	if custom := d.sugar(i, target, where); custom {
		return
	}
	for _, attr := range sortedAttributes(i.body.Attributes) {
		seen[attr.Name] = attr.NameRange
		if f, ok := s.attrs[attr.Name]; ok {
			d.attribute(attr, i.ctx, target.Field(f.index))
			continue
		}
		if f, ok := s.blocks[attr.Name]; ok && mapOrBlock(s.typ, attr.Name) {
			d.attribute(attr, i.ctx, target.Field(f.index))
			continue
		}
		if _, ok := s.blocks[attr.Name]; ok || more[attr.Name] != nil {
			d.add(errorAt(attr.NameRange, fmt.Sprintf("Unsupported argument %q", attr.Name),
				"%q is a block: write %s { ... } without an equals sign.", attr.Name, attr.Name))
			continue
		}
		d.add(unknownAttribute(attr, where, s.names()))
	}
	known := func(typ string) bool { return s.blocks[typ].typ != nil || more[typ] != nil || s.idle[typ] != "" }
	d.instances(i, known, func(b instance) {
		if instead := s.idle[b.typ]; instead != "" {
			d.add(warningAt(b.typRng, "Block without effect", "%q does nothing here; %s.", b.typ, instead))
			return
		}
		if decode := more[b.typ]; decode != nil {
			decode(b)
			return
		}
		f, ok := s.blocks[b.typ]
		if !ok {
			if _, isAttr := s.attrs[b.typ]; isAttr {
				d.add(errorAt(b.typRng, fmt.Sprintf("Unsupported block type %q", b.typ),
					"%q is an argument: write %s = VALUE.", b.typ, b.typ))
				return
			}
			extra := make([]string, 0, len(more))
			for n := range more {
				extra = append(extra, n)
			}
			d.add(errorAt(b.typRng, fmt.Sprintf("Unsupported block type %q", b.typ),
				"Blocks of type %q are not expected %s.%s", b.typ, where, suggestion(b.typ, s.names(extra...))))
			return
		}
		d.block(b, s, f, target.Field(f.index), seen)
	})
	for _, name := range required(s.typ, i) {
		if _, ok := i.body.Attributes[name]; !ok {
			d.add(errorAt(i.rng, fmt.Sprintf("Missing required argument %q", name),
				"The argument %q is required %s.", name, where))
		}
	}
	d.fill(i, target)
}

func article(noun string) string {
	switch noun[0] {
	case 'a', 'e', 'i', 'o', 'u':
		return "an " + noun
	}
	return "a " + noun
}

func (d *decoder) label(i instance, s *schema, target reflect.Value) {
	if s.typ == reflect.TypeFor[structs.Job]() {
		return
	}
	want := 0
	if s.label != nil {
		want = 1
	}
	switch {
	case len(i.labels) > want:
		d.add(errorAt(i.rng, fmt.Sprintf("Extraneous label for %s", i.typ), "%s blocks have %d label(s).", i.typ, want))
	case len(i.labels) < want:
		d.add(errorAt(i.rng, fmt.Sprintf("Missing name for %s", i.typ), `Write %s "NAME" { ... }.`, i.typ))
	case want == 1:
		f := target.Field(s.label.index)
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.ValueOf(structs.Ptr(i.labels[0])))
		} else {
			f.SetString(i.labels[0])
		}
	}
}

// block decodes one block into the member f.
func (d *decoder) block(b instance, s *schema, f field, target reflect.Value, seen map[string]hcl.Range) {
	once := func() bool {
		first, dup := seen[b.typ]
		if dup {
			d.add(errorAt(b.rng, fmt.Sprintf("Duplicate %s block", b.typ),
				"Only one %s is allowed here. Another was written on line %d.", b.typ, first.Start.Line))
		}
		seen[b.typ] = b.rng
		return !dup
	}
	switch f.typ.Kind() {
	case reflect.Pointer:
		if once() {
			value := reflect.New(f.typ.Elem())
			d.body(b, value.Elem(), nil)
			target.Set(value)
		}
	case reflect.Struct:
		if once() {
			d.body(b, target, nil)
		}
	case reflect.Slice:
		elem := f.typ.Elem()
		isPtr := elem.Kind() == reflect.Pointer
		if isPtr {
			elem = elem.Elem()
		}
		value := reflect.New(elem)
		if elem == reflect.TypeFor[structs.Port]() {
			d.port(b, value.Interface().(*structs.Port), s, target)
			return
		}
		d.body(b, value.Elem(), nil)
		if !isPtr {
			value = value.Elem()
		}
		target.Set(reflect.Append(target, value))
	case reflect.Map:
		d.mapBlock(b, f, target, once)
	default:
		d.add(errorAt(b.rng, "Unsupported block", "The %s block cannot be decoded.", b.typ))
	}
}

// port puts a port into the list of static or dynamic ones. The list it came by is that of dynamic ports.
func (d *decoder) port(b instance, port *structs.Port, _ *schema, dynamic reflect.Value) {
	d.body(b, reflect.ValueOf(port).Elem(), nil)
	if port.Value == 0 {
		dynamic.Set(reflect.Append(dynamic, reflect.ValueOf(*port)))
		return
	}
	d.statics = append(d.statics, *port)
}

func (d *decoder) mapBlock(b instance, f field, target reflect.Value, once func() bool) {
	elem := f.typ.Elem()
	switch {
	case elem.Kind() == reflect.Pointer: // labelled, like volume
		value := reflect.New(elem.Elem())
		d.body(b, value.Elem(), nil)
		if len(b.labels) != 1 {
			return
		}
		if target.IsNil() {
			target.Set(reflect.MakeMap(f.typ))
		}
		target.SetMapIndex(reflect.ValueOf(b.labels[0]), value)
	case elem.Kind() == reflect.Interface: // free form
		if !once() {
			return
		}
		d.noLabels(b)
		target.Set(reflect.ValueOf(d.free(b.body, b.ctx)))
	default:
		if !once() {
			return
		}
		d.noLabels(b)
		target.Set(reflect.MakeMap(f.typ))
		for _, inner := range b.body.Blocks {
			d.add(errorAt(inner.TypeRange, "Unexpected block", "Only NAME = VALUE is allowed in %s.", b.typ))
		}
		for _, attr := range sortedAttributes(b.body.Attributes) {
			value := reflect.New(elem).Elem()
			d.attribute(attr, b.ctx, value)
			target.SetMapIndex(reflect.ValueOf(attr.Name), value)
		}
	}
}

func (d *decoder) noLabels(b instance) {
	if len(b.labels) > 0 {
		d.add(errorAt(b.rng, fmt.Sprintf("Extraneous label for %s", b.typ), "%s blocks have no labels.", b.typ))
	}
}

// attribute evaluates an attribute into target.
func (d *decoder) attribute(attr *hclsyntax.Attribute, ctx *hcl.EvalContext, target reflect.Value) {
	value, diags := attr.Expr.Value(ctx)
	d.meter.charge(value, attr.Expr.Range())
	d.add(diags...)
	if diags.HasErrors() || !d.known(attr, value) {
		return
	}
	rng := attr.Expr.Range()
	typ := target.Type()
	isPtr := typ.Kind() == reflect.Pointer
	if isPtr {
		typ = typ.Elem()
	}
	if value.IsNull() {
		switch typ.Kind() {
		case reflect.Map, reflect.Slice:
		default:
			if !isPtr {
				d.add(errorAt(rng, fmt.Sprintf("Null for %q", attr.Name), "A value is required, null is none. Leave %q out instead.", attr.Name))
			}
		}
		return
	}
	if typ == durationType {
		d.duration(attr, value, target, isPtr)
		return
	}
	want, err := gocty.ImpliedType(reflect.Zero(typ).Interface())
	if err != nil {
		d.add(errorAt(rng, "Unsupported value", "%q cannot be decoded: %s.", attr.Name, err))
		return
	}
	converted, err := convert.Convert(value, want)
	if err != nil {
		d.add(errorAt(rng, fmt.Sprintf("Wrong type for %q", attr.Name), "%q needs %s: %s.", attr.Name, want.FriendlyName(), err))
		return
	}
	holder := reflect.New(typ)
	if err := gocty.FromCtyValue(converted, holder.Interface()); err != nil {
		d.add(errorAt(rng, fmt.Sprintf("Unsuitable value for %q", attr.Name), "%s.", err))
		return
	}
	if isPtr {
		target.Set(holder)
	} else {
		target.Set(holder.Elem())
	}
}

func (d *decoder) duration(attr *hclsyntax.Attribute, value cty.Value, target reflect.Value, isPtr bool) {
	rng := attr.Expr.Range()
	var duration time.Duration
	switch value.Type() {
	case cty.String:
		parsed, err := time.ParseDuration(value.AsString())
		if err != nil {
			d.add(errorAt(rng, fmt.Sprintf("Invalid duration for %q", attr.Name),
				`%q is no duration: write a number with a unit, such as "300ms", "30s", "5m" or "1h30m".`, value.AsString()))
			return
		}
		duration = parsed
	case cty.Number:
		var nanoseconds int64
		if err := gocty.FromCtyValue(value, &nanoseconds); err != nil {
			d.add(errorAt(rng, fmt.Sprintf("Invalid duration for %q", attr.Name), "A number is a count of nanoseconds: %s.", err))
			return
		}
		duration = time.Duration(nanoseconds)
	default:
		d.add(errorAt(rng, fmt.Sprintf("Invalid duration for %q", attr.Name), `Write a text such as "30s", not %s.`, value.Type().FriendlyName()))
		return
	}
	if isPtr {
		target.Set(reflect.ValueOf(&duration))
	} else {
		target.SetInt(int64(duration))
	}
}

// known refuses a value which cannot be told before the job runs.
func (d *decoder) known(attr *hclsyntax.Attribute, value cty.Value) bool {
	if value.IsWhollyKnown() {
		return true
	}
	if !d.lenient {
		d.add(errorAt(attr.Expr.Range(), fmt.Sprintf("Unknown value for %q", attr.Name), "The value cannot be computed."))
	}
	return false
}
