package jobspec

import (
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// readLocals evaluates all locals blocks. Locals may refer to each other in any order; of two with one name the later
// counts.
func (p *parser) readLocals(top *topLevel) {
	attrs := map[string]*hclsyntax.Attribute{}
	for _, block := range top.locals {
		if len(block.Labels) > 0 {
			p.add(errorAt(block.LabelRanges[0], "Extraneous label for locals", "A locals block has no labels."))
		}
		for _, inner := range block.Body.Blocks {
			p.add(unknownBlock(inner, "in locals; only NAME = VALUE is allowed", nil))
		}
		for name, attr := range block.Body.Attributes {
			p.refs.rewriteExpr(attr.Expr, top.src, names{})
			attrs[name] = attr
		}
	}
	p.refs.publish(p.root)
	e := &localEvaluator{p: p, attrs: attrs, values: map[string]cty.Value{}, state: map[string]int{}}
	sorted := make([]string, 0, len(attrs))
	for name := range attrs {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	for _, name := range sorted {
		e.eval(name, nil)
	}
	p.root.Variables["local"] = cty.ObjectVal(e.values)
}

type localEvaluator struct {
	p      *parser
	attrs  map[string]*hclsyntax.Attribute
	values map[string]cty.Value
	state  map[string]int // 1 under way, 2 done
}

func (e *localEvaluator) eval(name string, path []string) {
	attr, ok := e.attrs[name]
	if !ok || e.state[name] == 2 {
		return
	}
	path = append(path, name)
	if e.state[name] == 1 {
		e.p.add(errorAt(attr.NameRange, "Locals refer to each other in a circle", "%s", strings.Join(path, " -> ")))
		return
	}
	e.state[name] = 1
	for _, t := range attr.Expr.Variables() {
		if t.RootName() != "local" || len(t) < 2 {
			continue
		}
		if step, ok := t[1].(hcl.TraverseAttr); ok {
			e.eval(step.Name, path)
		}
	}
	if e.state[name] == 2 {
		return
	}
	ctx := e.p.root.NewChild()
	ctx.Variables = map[string]cty.Value{"local": cty.ObjectVal(e.values)}
	value, diags := e.p.meter.evaluate(attr.Expr, ctx)
	e.p.add(diags...)
	if diags.HasErrors() {
		value = cty.DynamicVal
	}
	e.values[name] = value
	e.state[name] = 2
}
