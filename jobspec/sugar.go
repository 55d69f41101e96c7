package jobspec

import (
	"reflect"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadlite/nomadlite/structs"
)

// sugar decodes the blocks which may be written in a shorter way; it says whether target was one.
func (d *decoder) sugar(i instance, target reflect.Value, where string) bool {
	switch v := target.Addr().Interface().(type) {
	case *structs.Constraint:
		d.constraint(i, v, where)
	case *structs.Affinity:
		d.affinity(i, v, where)
	default:
		return false
	}
	return true
}

// operand is an operator written as an argument: version = "> 1" for operator = "version", value = "> 1".
type operand struct {
	name string
	set  func(value string)
}

func (d *decoder) constraint(i instance, c *structs.Constraint, where string) {
	c.Operand = "="
	distinctHosts := false
	text := map[string]*string{"attribute": &c.LTarget, "operator": &c.Operand, "value": &c.RTarget}
	as := func(name string) operand {
		return operand{name, func(v string) { c.Operand, c.RTarget = name, v }}
	}
	sugar := []operand{as("version"), as("semver"), as("regexp"), as("set_contains"),
		{"distinct_property", func(v string) { c.Operand, c.LTarget = "distinct_property", v }}}
	idle := []string{"set_contains_any", "set_contains_all", "is_set", "is_not_set"}
	d.operands(i, where, text, sugar, idle, func(attr *hclsyntax.Attribute) bool {
		if attr.Name != "distinct_hosts" {
			return false
		}
		d.attribute(attr, i.ctx, reflect.ValueOf(&distinctHosts).Elem())
		c.Operand, c.RTarget = "distinct_hosts", strconv.FormatBool(distinctHosts)
		return true
	}, "distinct_hosts")
}

func (d *decoder) affinity(i instance, a *structs.Affinity, where string) {
	a.Operand = "="
	text := map[string]*string{"attribute": &a.LTarget, "operator": &a.Operand, "value": &a.RTarget}
	as := func(name string) operand {
		return operand{name, func(v string) { a.Operand, a.RTarget = name, v }}
	}
	sugar := []operand{as("version"), as("semver"), as("regexp"), as("set_contains"), as("set_contains_all"), as("set_contains_any")}
	d.operands(i, where, text, sugar, nil, func(attr *hclsyntax.Attribute) bool {
		if attr.Name != "weight" {
			return false
		}
		a.Weight = d.weight(attr, i.ctx)
		return true
	}, "weight")
}

// weight decodes the weight of an affinity, which keeps eight bits of the number written: 300 is 44. The established
// tools do so without a word, and their jobs are out there; here it is told.
func (d *decoder) weight(attr *hclsyntax.Attribute, ctx *hcl.EvalContext) *int8 {
	var written *int64
	d.attribute(attr, ctx, reflect.ValueOf(&written).Elem())
	if written == nil {
		return nil
	}
	kept := int8(*written)
	if int64(kept) != *written {
		d.add(warningAt(attr.Expr.Range(), "Weight out of range",
			"A weight is from -100 to 100; of %d only %d is kept, as eight bits hold no more.", *written, kept))
	}
	return &kept
}

// operands decodes the plain arguments first, then the sugar, which wins.
func (d *decoder) operands(i instance, where string, text map[string]*string, sugar []operand, idle []string,
	other func(*hclsyntax.Attribute) bool, otherNames ...string) {
	d.noLabels(i)
	known := append(append([]string(nil), idle...), otherNames...)
	for name := range text {
		known = append(known, name)
	}
	for _, s := range sugar {
		known = append(known, s.name)
	}
	attrs := sortedAttributes(i.body.Attributes)
	for _, attr := range attrs {
		if target, ok := text[attr.Name]; ok {
			d.attribute(attr, i.ctx, reflect.ValueOf(target).Elem())
		}
	}
	for _, attr := range attrs {
		if _, ok := text[attr.Name]; ok || d.operand(attr, i, sugar) || other(attr) {
			continue
		}
		found := false
		for _, name := range idle {
			if attr.Name == name {
				found = true
				d.add(warningAt(attr.NameRange, "Argument without effect",
					"%q as an argument does nothing; write operator = %q.", name, name))
			}
		}
		if !found {
			d.add(unknownAttribute(attr, where, known))
		}
	}
	for _, block := range i.body.Blocks {
		d.add(unknownBlock(block, where, known))
	}
}

func (d *decoder) operand(attr *hclsyntax.Attribute, i instance, sugar []operand) bool {
	for _, s := range sugar {
		if s.name == attr.Name {
			var value string
			d.attribute(attr, i.ctx, reflect.ValueOf(&value).Elem())
			s.set(value)
			return true
		}
	}
	return false
}

// fill sets the little which the parser itself fills in.
func (d *decoder) fill(i instance, target reflect.Value) {
	switch v := target.Addr().Interface().(type) {
	case *structs.Template:
		fillPtr(&v.ChangeMode, "restart")
		fillPtr(&v.Splay, 5*time.Second)
		fillPtr(&v.Perms, "0644")
		fillPtr(&v.ErrMissingKey, false)
	case *structs.ChangeScript:
		fillPtr(&v.Timeout, 5*time.Second)
		fillPtr(&v.FailOnError, false)
		fillPtr(&v.RunOnFirstRender, false)
	case *structs.Vault:
		fillPtr(&v.Env, true)
		fillPtr(&v.DisableFile, false)
		fillPtr(&v.ChangeMode, "restart")
	case *structs.NetworkResource:
		v.ReservedPorts = append(v.ReservedPorts, d.statics...)
		d.statics = nil
	case *structs.VolumeRequest:
		if len(i.labels) == 1 {
			v.Name = i.labels[0]
		}
	}
}

func fillPtr[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
