package jobspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// instances calls yield for each block of i, those of dynamic blocks included, in the order of the text.
func (d *decoder) instances(i instance, known func(typ string) bool, yield func(instance)) {
	for _, block := range i.body.Blocks {
		if block.Type == "dynamic" {
			d.dynamic(block, i.ctx, known, yield)
			continue
		}
		yield(instance{typ: block.Type, labels: block.Labels, body: block.Body, ctx: i.ctx,
			rng: block.DefRange(), typRng: block.TypeRange})
	}
}

// dynamic expands one dynamic block.
func (d *decoder) dynamic(block *hclsyntax.Block, ctx *hcl.EvalContext, known func(string) bool, yield func(instance)) {
	if len(block.Labels) != 1 {
		d.add(errorAt(block.DefRange(), "A dynamic block names one block type", `Write dynamic "TYPE" { ... }.`))
		return
	}
	typ := block.Labels[0]
	if !known(typ) {
		d.add(errorAt(block.LabelRanges[0], fmt.Sprintf("Unsupported block type %q", typ),
			"Blocks of type %q are not expected here.", typ))
		return
	}
	forEach := block.Body.Attributes["for_each"]
	content := d.dynamicContent(block)
	if forEach == nil {
		d.add(errorAt(block.DefRange(), "Missing for_each", "A dynamic block needs for_each."))
	}
	if forEach == nil || content == nil {
		return
	}
	collection, diags := forEach.Expr.Value(ctx)
	d.meter.charge(collection, forEach.Expr.Range())
	d.add(diags...)
	if diags.HasErrors() || !collection.IsKnown() {
		return
	}
	if collection.IsNull() || !collection.CanIterateElements() {
		d.add(errorAt(forEach.Expr.Range(), "Invalid for_each", "for_each needs a list, a map or a set, not %s.",
			collection.Type().FriendlyName()))
		return
	}
	for it := collection.ElementIterator(); it.Next(); {
		key, value := it.Element()
		if collection.Type().IsSetType() {
			key = value
		}
		d.meter.take(blockCost, block.LabelRanges[0])
		child := ctx.NewChild()
		child.Variables = map[string]cty.Value{
			iteratorName(block): cty.ObjectVal(map[string]cty.Value{"key": key, "value": value}),
		}
		labels, ok := d.dynamicLabels(block, child)
		if !ok {
			return
		}
		yield(instance{typ: typ, labels: labels, body: content.Body, ctx: child, rng: block.DefRange(), typRng: block.LabelRanges[0]})
	}
}

func (d *decoder) dynamicContent(block *hclsyntax.Block) *hclsyntax.Block {
	var content *hclsyntax.Block
	for _, inner := range block.Body.Blocks {
		if inner.Type != "content" {
			d.add(unknownBlock(inner, "in a dynamic block", []string{"content"}))
			continue
		}
		if content != nil {
			d.add(duplicateBlock(inner, content.DefRange()))
			continue
		}
		content = inner
	}
	if content == nil {
		d.add(errorAt(block.DefRange(), "Missing content block", "A dynamic block needs one content block."))
	}
	for _, attr := range sortedAttributes(block.Body.Attributes) {
		switch attr.Name {
		case "for_each", "iterator", "labels":
		default:
			d.add(unknownAttribute(attr, "in a dynamic block", []string{"for_each", "iterator", "labels"}))
		}
	}
	return content
}

func (d *decoder) dynamicLabels(block *hclsyntax.Block, ctx *hcl.EvalContext) ([]string, bool) {
	attr, ok := block.Body.Attributes["labels"]
	if !ok {
		return nil, true
	}
	value, diags := attr.Expr.Value(ctx)
	d.meter.charge(value, attr.Expr.Range())
	d.add(diags...)
	if diags.HasErrors() {
		return nil, false
	}
	list, err := convert.Convert(value, cty.List(cty.String))
	if err != nil || list.IsNull() || !list.IsWhollyKnown() {
		d.add(errorAt(attr.Expr.Range(), "Invalid labels", "labels needs a list of texts."))
		return nil, false
	}
	var labels []string
	for it := list.ElementIterator(); it.Next(); {
		_, v := it.Element()
		if v.IsNull() {
			d.add(errorAt(attr.Expr.Range(), "Invalid labels", "A label must not be null."))
			return nil, false
		}
		labels = append(labels, v.AsString())
	}
	return labels, true
}
