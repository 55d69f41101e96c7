package jobspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// What the evaluation of one jobspec may cost: a byte of text costs 1, an element of a list or map elementCost, each
// evaluation of a part of an expression stepCost, a block that a dynamic block gives blockCost. Real jobspecs need some
// thousands.
const (
	evaluationBudget = 1 << 26
	elementCost      = 32
	stepCost         = 96
	blockCost        = 2048
)

// maxExponent bounds numbers: none may need more than so many binary digits before or after the point. Written out, a
// number such as 1e999999999 would fill the memory.
const maxExponent = 4096

// meter counts what the expressions of one text cost, since a few short lines can describe more than any memory holds:
// locals that double each other, nested for expressions, products of sets.
type meter struct {
	left  int
	fault *hcl.Diagnostic
}

// overBudget ends an evaluation from within: the HCL library has no other way to be stopped.
type overBudget struct{}

// guard runs f and gives the fault when f exceeded the budget.
func (m *meter) guard(f func()) (fault *hcl.Diagnostic) {
	defer func() {
		r := recover()
		if _, over := r.(overBudget); r != nil && !over {
			panic(r)
		}
		fault = m.fault // also when a function of the library caught the panic
	}()
	f()
	return nil
}

// charge takes the cost of a value off the budget.
func (m *meter) charge(v cty.Value, rng hcl.Range) { m.value(v, rng) }

func (m *meter) value(v cty.Value, rng hcl.Range) {
	m.take(elementCost, rng)
	if !v.IsKnown() || v.IsNull() {
		return
	}
	t := v.Type()
	switch {
	case t == cty.String:
		m.take(len(v.AsString()), rng)
	case t == cty.Number:
		f := v.AsBigFloat()
		if exponent := f.MantExp(nil); f.IsInf() || exponent > maxExponent || exponent < -maxExponent {
			m.stop(errorAt(rng, "Number out of range", "A number must not need more than %d binary digits.", maxExponent))
		}
	case t.IsMapType(), t.IsObjectType(), t.IsCollectionType(), t.IsTupleType():
		for it := v.ElementIterator(); it.Next(); {
			key, element := it.Element()
			if key.Type() == cty.String && key.IsKnown() && !t.IsSetType() {
				m.take(len(key.AsString()), rng)
			}
			m.value(element, rng)
		}
	}
}

func (m *meter) take(cost int, rng hcl.Range) {
	if m.left -= cost; m.left < 0 || m.fault != nil {
		m.stop(errorAt(rng, "Jobspec too large", "What the expressions of this jobspec give is too large, here at the latest. "+
			"Look for locals that multiply each other and for nested for expressions."))
	}
}

func (m *meter) stop(fault *hcl.Diagnostic) {
	if m.fault == nil {
		m.fault = fault
	}
	panic(overBudget{})
}

// metered is an expression whose values are charged. It stands in the tree as parentheses do, so that walks still find
// what is in it.
type metered struct {
	*hclsyntax.ParenthesesExpr
	meter *meter
}

// Value evaluates the expression and charges what it gives.
func (e *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	e.meter.take(stepCost, e.SrcRange) // before: with no budget left nothing is evaluated any more
	v, diags := e.Expression.Value(ctx)
	e.meter.charge(v, e.SrcRange)
	return v, diags
}

func (m *meter) wrap(expr hclsyntax.Expression) hclsyntax.Expression {
	return &metered{&hclsyntax.ParenthesesExpr{Expression: expr, SrcRange: expr.Range()}, m}
}

// body puts the expressions of a block and of all blocks in it on the meter.
func (m *meter) body(body *hclsyntax.Body) {
	for _, attr := range body.Attributes {
		m.inside(attr.Expr)
	}
	for _, block := range body.Blocks {
		m.body(block.Body)
	}
}

// inside puts the parts of an expression on the meter; who evaluates the whole charges its value.
func (m *meter) inside(expr hclsyntax.Expression) {
	each := func(slots ...*hclsyntax.Expression) {
		for _, slot := range slots {
			*slot = m.part(*slot)
		}
	}
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		each(&e.Expression)
	case *hclsyntax.RelativeTraversalExpr:
		each(&e.Source)
	case *hclsyntax.FunctionCallExpr:
		for i := range e.Args {
			if e.Name != "convert" || i == 0 { // the other is a type
				each(&e.Args[i])
			}
		}
	case *hclsyntax.ConditionalExpr:
		each(&e.Condition, &e.TrueResult, &e.FalseResult)
	case *hclsyntax.IndexExpr:
		if _, plain := e.Collection.(*hclsyntax.ScopeTraversalExpr); !plain { // a look-up does not copy the collection
			each(&e.Collection)
		}
		each(&e.Key)
	case *hclsyntax.TupleConsExpr:
		for i := range e.Exprs {
			each(&e.Exprs[i])
		}
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			if key, ok := e.Items[i].KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok {
				m.inside(key.Wrapped)
			}
			each(&e.Items[i].ValueExpr)
		}
	case *hclsyntax.ForExpr:
		each(&e.CollExpr)
		for _, slot := range []*hclsyntax.Expression{&e.KeyExpr, &e.ValExpr, &e.CondExpr} {
			if *slot != nil {
				m.inside(*slot)
				*slot = m.wrap(*slot) // each round costs, whatever it gives
			}
		}
	case *hclsyntax.SplatExpr:
		each(&e.Source)
	case *hclsyntax.BinaryOpExpr:
		each(&e.LHS, &e.RHS)
	case *hclsyntax.UnaryOpExpr:
		each(&e.Val)
	case *hclsyntax.TemplateExpr:
		for i := range e.Parts {
			each(&e.Parts[i])
		}
	case *hclsyntax.TemplateJoinExpr:
		each(&e.Tuple)
	case *hclsyntax.TemplateWrapExpr:
		each(&e.Wrapped)
	}
}

func (m *meter) part(expr hclsyntax.Expression) hclsyntax.Expression {
	m.inside(expr)
	switch e := expr.(type) {
	case *hclsyntax.ScopeTraversalExpr, *hclsyntax.RelativeTraversalExpr, *hclsyntax.IndexExpr, *hclsyntax.SplatExpr,
		*hclsyntax.FunctionCallExpr, *hclsyntax.BinaryOpExpr, *hclsyntax.UnaryOpExpr:
		return m.wrap(expr)
	case *hclsyntax.LiteralValueExpr:
		if e.Val.Type() == cty.Number {
			return m.wrap(expr)
		}
	}
	return expr
}

// evaluate gives the value of an expression that is not yet on the meter and needs no context but ctx.
func (m *meter) evaluate(expr hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if e, ok := expr.(hclsyntax.Expression); ok {
		m.inside(e)
	}
	v, diags := expr.Value(ctx)
	m.charge(v, expr.Range())
	return v, diags
}

// tooLong is the error of a function whose result would be out of all proportion.
func tooLong(what string, limit int) error {
	return fmt.Errorf("%s is more than the %d allowed", what, limit)
}
