package jobspec

import (
	"math"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// free decodes a block of free form (a driver's config, a scaling policy): blocks become lists of maps, their labels
// keys on the way; a map written out as such becomes a list of one map, any other value stays what it is.
func (d *decoder) free(body *hclsyntax.Body, ctx *hcl.EvalContext) map[string]any {
	out := map[string]any{}
	for _, attr := range sortedAttributes(body.Attributes) {
		value, diags := attr.Expr.Value(ctx)
		d.meter.charge(value, attr.Expr.Range())
		d.add(diags...)
		if diags.HasErrors() || !d.known(attr, value) {
			continue
		}
		if hasEndless(value) {
			d.add(errorAt(attr.Expr.Range(), "Number out of range", "Numbers must lie between -1.8e308 and 1.8e308."))
			continue
		}
		converted := toAny(value)
		if _, literal := attr.Expr.(*hclsyntax.ObjectConsExpr); literal {
			converted = []any{converted}
		}
		out[attr.Name] = converted
	}
	for _, block := range body.Blocks {
		var value any = d.free(block.Body, ctx)
		for i := len(block.Labels) - 1; i >= 0; i-- {
			value = map[string]any{block.Labels[i]: []any{value}}
		}
		switch have := out[block.Type].(type) {
		case nil:
			out[block.Type] = []any{value}
		case []any:
			out[block.Type] = append(have, value)
		default:
			d.add(errorAt(block.DefRange(), "Duplicate name", "%q is an argument and a block.", block.Type))
		}
	}
	return out
}

// hasEndless says that a value has a number which JSON cannot hold.
func hasEndless(v cty.Value) bool {
	found := false
	_ = cty.Walk(v, func(_ cty.Path, inner cty.Value) (bool, error) {
		if inner.Type() == cty.Number && inner.IsKnown() && !inner.IsNull() {
			f, _ := inner.AsBigFloat().Float64()
			found = found || math.IsInf(f, 0)
		}
		return !found, nil
	})
	return found
}

// toAny gives a value as JSON would hold it; whole numbers stay exact.
func toAny(v cty.Value) any {
	if v.IsNull() {
		return nil
	}
	t := v.Type()
	switch {
	case t == cty.String:
		return v.AsString()
	case t == cty.Bool:
		return v.True()
	case t == cty.Number:
		return number(v.AsBigFloat())
	case t.IsListType(), t.IsTupleType(), t.IsSetType():
		list := make([]any, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			list = append(list, toAny(e))
		}
		return list
	case t.IsMapType(), t.IsObjectType():
		m := make(map[string]any, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			m[k.AsString()] = toAny(e)
		}
		return m
	}
	return nil
}

func number(f *big.Float) any {
	if f.IsInt() {
		if i, acc := f.Int64(); acc == big.Exact {
			return i
		}
		if u, acc := f.Uint64(); acc == big.Exact {
			return u
		}
	}
	x, _ := f.Float64()
	return x
}
