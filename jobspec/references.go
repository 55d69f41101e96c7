package jobspec

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// references turns what only a node can resolve (node.class, "${NOMAD_TASK_DIR}", anything that is neither a variable,
// a local nor a loop's name) into text. Each distinct text becomes a variable of a name that no jobspec can spell, and
// the reference in the syntax tree is pointed at it; so operators and functions see a text.
type references struct {
	byText map[string]string
	values map[string]cty.Value
}

// names is a set of names in scope.
type names map[string]bool

func newReferences() *references {
	return &references{byText: map[string]string{}, values: map[string]cty.Value{}}
}

// publish makes the texts known to ctx.
func (r *references) publish(ctx *hcl.EvalContext) {
	if ctx.Variables == nil {
		ctx.Variables = map[string]cty.Value{}
	}
	for name, value := range r.values {
		ctx.Variables[name] = value
	}
}

// rewriteBody walks a block. Dynamic blocks bring their iterator into scope, except inside blocks of free form, where
// "dynamic" is a block like any other.
func (r *references) rewriteBody(body *hclsyntax.Body, src []byte, scope names, dynamic bool) {
	for _, attr := range body.Attributes {
		r.rewriteExpr(attr.Expr, src, scope)
	}
	for _, block := range body.Blocks {
		if !dynamic || block.Type != "dynamic" {
			r.rewriteBody(block.Body, src, scope, dynamic && !freeForm[block.Type])
			continue
		}
		inner := names{}
		for n := range scope {
			inner[n] = true
		}
		inner[iteratorName(block)] = true
		for name, attr := range block.Body.Attributes {
			switch name {
			case "iterator":
			case "labels":
				r.rewriteExpr(attr.Expr, src, inner)
			default:
				r.rewriteExpr(attr.Expr, src, scope)
			}
		}
		for _, content := range block.Body.Blocks {
			free := len(block.Labels) == 1 && freeForm[block.Labels[0]]
			r.rewriteBody(content.Body, src, inner, !free)
		}
	}
}

// freeForm are the blocks whose content the language does not look into.
var freeForm = map[string]bool{"config": true, "policy": true}

func iteratorName(block *hclsyntax.Block) string {
	if attr, ok := block.Body.Attributes["iterator"]; ok {
		if name := hcl.ExprAsKeyword(attr.Expr); name != "" {
			return name
		}
	}
	if len(block.Labels) > 0 {
		return block.Labels[0]
	}
	return ""
}

func (r *references) rewriteExpr(expr hclsyntax.Expression, src []byte, scope names) {
	w := &referenceWalker{refs: r, src: src, scopes: []names{scope}, keep: map[*hclsyntax.ScopeTraversalExpr]bool{}}
	_ = hclsyntax.Walk(expr, w)
}

type referenceWalker struct {
	refs   *references
	src    []byte
	scopes []names
	keep   map[*hclsyntax.ScopeTraversalExpr]bool
}

// Enter points unknown references at their text; scopes of for expressions are kept in mind.
func (w *referenceWalker) Enter(node hclsyntax.Node) hcl.Diagnostics {
	switch n := node.(type) {
	case hclsyntax.ChildScope:
		inner := names{}
		for name := range n.LocalNames {
			inner[name] = true
		}
		w.scopes = append(w.scopes, inner)
	case *hclsyntax.FunctionCallExpr:
		if n.Name == "convert" && len(n.Args) == 2 { // its second argument is a type expression
			for _, t := range traversals(n.Args[1]) {
				w.keep[t] = true
			}
		}
	case *hclsyntax.ObjectConsKeyExpr:
		if t, ok := n.Wrapped.(*hclsyntax.ScopeTraversalExpr); ok && !n.ForceNonLiteral {
			w.keep[t] = true // a plain name, or an ambiguous key which the evaluation refuses
		}
	case *hclsyntax.ScopeTraversalExpr:
		if !w.keep[n] && !w.known(n.Traversal.RootName()) {
			w.refs.point(n, w.src)
		}
	}
	return nil
}

// Exit leaves a scope.
func (w *referenceWalker) Exit(node hclsyntax.Node) hcl.Diagnostics {
	if _, ok := node.(hclsyntax.ChildScope); ok {
		w.scopes = w.scopes[:len(w.scopes)-1]
	}
	return nil
}

func (w *referenceWalker) known(root string) bool {
	if root == "var" || root == "local" || strings.HasPrefix(root, refPrefix) {
		return true
	}
	for _, s := range w.scopes {
		if s[root] {
			return true
		}
	}
	return false
}

// refPrefix cannot begin a name in HCL.
const refPrefix = "$ref:"

func (r *references) point(expr *hclsyntax.ScopeTraversalExpr, src []byte) {
	text := referenceText(expr.SrcRange, src)
	name, ok := r.byText[text]
	if !ok {
		name = fmt.Sprintf("%s%d", refPrefix, len(r.byText))
		r.byText[text] = name
		r.values[name] = cty.StringVal(text)
	}
	expr.Traversal = hcl.Traversal{hcl.TraverseRoot{Name: name, SrcRange: expr.SrcRange}}
}

// referenceText gives the text of a reference between braces. Blanks inside "${ ... }" stay as they are written.
func referenceText(rng hcl.Range, src []byte) string {
	start, end := rng.Start.Byte, rng.End.Byte
	plain := "${" + string(src[start:end]) + "}"
	before := start
	for before > 0 && (src[before-1] == ' ' || src[before-1] == '\t') {
		before--
	}
	after := end
	for after < len(src) && (src[after] == ' ' || src[after] == '\t') {
		after++
	}
	if before < 2 || src[before-1] != '{' || src[before-2] != '$' || after >= len(src) || src[after] != '}' {
		return plain
	}
	return "${" + string(src[before:after]) + "}"
}

// traversals lists the references below expr.
func traversals(expr hclsyntax.Expression) []*hclsyntax.ScopeTraversalExpr {
	var found []*hclsyntax.ScopeTraversalExpr
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		if t, ok := n.(*hclsyntax.ScopeTraversalExpr); ok {
			found = append(found, t)
		}
		return nil
	})
	return found
}
