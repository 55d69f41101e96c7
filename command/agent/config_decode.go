package agent

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
)

// decodeConfig fills the struct target by its hcl tags from HCL or JSON. Maps may be written as a block or as a value.
func decodeConfig(body hcl.Body, target any) hcl.Diagnostics {
	return decodeInto(body, reflect.ValueOf(target).Elem())
}

type member struct {
	index int
	typ   reflect.Type
	block bool
}

func members(t reflect.Type) (byName map[string]member, label int, schema *hcl.BodySchema) {
	byName, label, schema = map[string]member{}, -1, &hcl.BodySchema{}
	for i := range t.NumField() {
		name, kind, _ := strings.Cut(t.Field(i).Tag.Get("hcl"), ",")
		if kind == "label" {
			label = i
			continue
		}
		if name == "" {
			continue
		}
		m := member{index: i, typ: t.Field(i).Type}
		elem := m.typ
		if elem.Kind() == reflect.Slice {
			elem = elem.Elem()
		}
		m.block = elem.Kind() == reflect.Pointer && elem.Elem().Kind() == reflect.Struct
		if m.block || m.typ.Kind() == reflect.Map {
			head := hcl.BlockHeaderSchema{Type: name}
			if m.block {
				if _, l, _ := members(elem.Elem()); l >= 0 {
					head.LabelNames = []string{"name"}
				}
			}
			schema.Blocks = append(schema.Blocks, head)
		}
		if !m.block {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
		}
		byName[name] = m
	}
	return byName, label, schema
}

func decodeInto(body hcl.Body, target reflect.Value) hcl.Diagnostics {
	byName, _, schema := members(target.Type())
	content, diags := body.Content(schema)
	for name, attr := range content.Attributes {
		diags = append(diags, decodeAttribute(attr, target.Field(byName[name].index))...)
	}
	for _, block := range content.Blocks {
		m := byName[block.Type]
		field := target.Field(m.index)
		switch {
		case m.typ.Kind() == reflect.Map:
			diags = append(diags, decodeMapBlock(block, field)...)
		case m.typ.Kind() == reflect.Slice:
			value := reflect.New(m.typ.Elem().Elem())
			diags = append(diags, decodeBlock(block, value.Elem())...)
			field.Set(reflect.Append(field, value))
		default:
			if !field.IsNil() {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Subject: &block.DefRange,
					Summary: "Duplicate block", Detail: fmt.Sprintf("Only one %s block is allowed.", block.Type)})
				continue
			}
			value := reflect.New(m.typ.Elem())
			diags = append(diags, decodeBlock(block, value.Elem())...)
			field.Set(value)
		}
	}
	return diags
}

func decodeBlock(block *hcl.Block, target reflect.Value) hcl.Diagnostics {
	if _, label, _ := members(target.Type()); label >= 0 && len(block.Labels) == 1 {
		target.Field(label).SetString(block.Labels[0])
	}
	return decodeInto(block.Body, target)
}

func decodeMapBlock(block *hcl.Block, field reflect.Value) hcl.Diagnostics {
	if field.IsNil() {
		field.Set(reflect.MakeMap(field.Type()))
	}
	free := field.Type().Elem().Kind() == reflect.Interface
	var diags hcl.Diagnostics
	if native, ok := block.Body.(*hclsyntax.Body); ok && free {
		for _, inner := range native.Blocks {
			value := reflect.MakeMap(field.Type())
			holder := reflect.New(field.Type()).Elem()
			holder.Set(value)
			diags = append(diags, decodeMapBlock(&hcl.Block{Type: inner.Type, Body: inner.Body, DefRange: inner.DefRange()}, holder)...)
			field.SetMapIndex(reflect.ValueOf(inner.Type), holder)
		}
		native.Blocks = nil
	}
	attrs, more := block.Body.JustAttributes()
	diags = append(diags, more...)
	for name, attr := range attrs {
		value := reflect.New(field.Type().Elem()).Elem()
		diags = append(diags, decodeAttribute(attr, value)...)
		field.SetMapIndex(reflect.ValueOf(name), value)
	}
	return diags
}

func decodeAttribute(attr *hcl.Attribute, field reflect.Value) hcl.Diagnostics {
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || value.IsNull() {
		return diags
	}
	fail := func(err error) hcl.Diagnostics {
		rng := attr.Expr.Range()
		return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Subject: &rng,
			Summary: fmt.Sprintf("Unsuitable value for %q", attr.Name), Detail: err.Error() + "."})
	}
	if field.Kind() == reflect.Interface {
		field.Set(reflect.ValueOf(plain(value)))
		return diags
	}
	if field.Kind() == reflect.Map && field.Type().Elem().Kind() == reflect.Interface {
		m, ok := plain(value).(map[string]any)
		if !ok {
			return fail(fmt.Errorf("a map is needed"))
		}
		field.Set(reflect.ValueOf(m))
		return diags
	}
	want, err := gocty.ImpliedType(reflect.Zero(field.Type()).Interface())
	if err != nil {
		return fail(err)
	}
	converted, err := convert.Convert(value, want)
	if err != nil {
		return fail(err)
	}
	if err := gocty.FromCtyValue(converted, field.Addr().Interface()); err != nil {
		return fail(err)
	}
	return diags
}

// plain gives a value of a plugin's free-form configuration.
func plain(v cty.Value) any {
	t := v.Type()
	switch {
	case v.IsNull():
		return nil
	case t == cty.String:
		return v.AsString()
	case t == cty.Bool:
		return v.True()
	case t == cty.Number:
		if i, acc := v.AsBigFloat().Int64(); acc == 0 {
			return i
		}
		f, _ := v.AsBigFloat().Float64()
		return f
	case t.IsObjectType(), t.IsMapType():
		m := map[string]any{}
		for k, e := range v.AsValueMap() {
			m[k] = plain(e)
		}
		return m
	}
	var list []any
	for _, e := range v.AsValueSlice() {
		list = append(list, plain(e))
	}
	return list
}
