package jobspec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

const envPrefix = "NOMAD_VAR_"

// variable is one declared input variable.
type variable struct {
	name        string
	typ         cty.Type // cty.DynamicPseudoType when none is given and the default is none of a primitive type
	collection  bool     // has no type, but a list or an object as its default
	def         cty.Value
	hasDefault  bool
	declared    hcl.Range
	defRange    *hcl.Range
	validations []*validation
	value       cty.Value
	set         bool
	setRange    *hcl.Range
	env         string    // what the environment gave
	envValue    cty.Value // and what became of it; cty.NilVal when it gave nothing
	fileValue   cty.Value // what the last file gave; cty.NilVal when none gave anything
}

type validation struct {
	condition hclsyntax.Expression
	message   string
	declared  hcl.Range
}

// readVariables declares the variables, collects their values in order of precedence (environment, then files, then
// arguments; the later counts), checks them and publishes var.
func (p *parser) readVariables(top *topLevel) {
	for _, block := range top.variables {
		p.declare(p.variableBlock(block))
	}
	for _, block := range top.untyped {
		for _, inner := range block.Body.Blocks {
			p.add(unknownBlock(inner, "in variables; only NAME = VALUE is allowed", nil))
		}
		for _, attr := range sortedAttributes(block.Body.Attributes) {
			value, diags := p.meter.evaluate(attr.Expr, nil)
			p.add(diags...)
			v := &variable{name: attr.Name, typ: cty.DynamicPseudoType, def: value, hasDefault: true, declared: attr.NameRange}
			v.takeTypeOfDefault()
			p.declare(v)
		}
	}
	p.fromEnvironment()
	for _, path := range p.cfg.VarFiles {
		p.fromFile(path)
	}
	if p.cfg.VarContent != "" {
		p.fromContent("variables.hcl", []byte(p.cfg.VarContent))
	}
	p.fromArguments()
	values := map[string]cty.Value{}
	for _, v := range p.vars {
		values[v.name] = p.finalValue(v)
	}
	if p.root.Variables == nil {
		p.root.Variables = map[string]cty.Value{}
	}
	p.root.Variables["var"] = cty.ObjectVal(values)
	for _, v := range p.vars {
		p.validate(v)
	}
}

func (p *parser) declare(v *variable) {
	if v == nil {
		return
	}
	if first := p.lookup(v.name); first != nil {
		p.add(errorAt(v.declared, "Duplicate variable", "A variable %q was declared on line %d already.", v.name, first.declared.Start.Line))
		return
	}
	p.vars = append(p.vars, v)
}

func (p *parser) lookup(name string) *variable {
	for _, v := range p.vars {
		if v.name == name {
			return v
		}
	}
	return nil
}

func (p *parser) variableBlock(block *hclsyntax.Block) *variable {
	if len(block.Labels) != 1 {
		p.add(errorAt(block.DefRange(), "Variable needs one name", `Write variable "NAME" { ... }.`))
		return nil
	}
	v := &variable{name: block.Labels[0], typ: cty.DynamicPseudoType, declared: block.DefRange()}
	if !hclsyntax.ValidIdentifier(v.name) {
		p.add(errorAt(block.LabelRanges[0], "Invalid variable name", "%q is no name: it must begin with a letter or underscore.", v.name))
	}
	known := []string{"type", "default", "description", "validation"}
	for _, attr := range sortedAttributes(block.Body.Attributes) {
		switch attr.Name {
		case "type":
			typ, diags := typeexpr.Type(attr.Expr)
			p.add(diags...)
			if !diags.HasErrors() {
				v.typ = typ
			}
		case "default", "description":
		default:
			p.add(unknownAttribute(attr, "in a variable block", known))
		}
	}
	if attr, ok := block.Body.Attributes["default"]; ok {
		value, diags := p.meter.evaluate(attr.Expr, nil)
		p.add(diags...)
		rng := attr.Expr.Range()
		v.hasDefault, v.def, v.defRange = true, cty.DynamicVal, &rng
		if !diags.HasErrors() {
			v.def = p.convert(v, value, attr.Expr.Range())
			if _, given := block.Body.Attributes["type"]; !given {
				v.takeTypeOfDefault()
			}
		}
	}
	for _, inner := range block.Body.Blocks {
		if inner.Type != "validation" {
			p.add(unknownBlock(inner, "in a variable block", known))
			continue
		}
		if rule := p.validationBlock(inner); rule != nil {
			v.validations = append(v.validations, rule)
		}
	}
	return v
}

// takeTypeOfDefault gives a variable without a type of its own the type of its default. A collection as a default says
// only that other values are collections too: ["a"] says nothing of how many elements they may have, or of which type.
func (v *variable) takeTypeOfDefault() {
	switch typ := v.def.Type(); {
	case typ.IsPrimitiveType():
		v.typ = typ
	case typ.IsTupleType() || typ.IsObjectType():
		v.collection = true
	}
}

func (p *parser) validationBlock(block *hclsyntax.Block) *validation {
	rule := &validation{declared: block.DefRange()}
	for _, attr := range sortedAttributes(block.Body.Attributes) {
		switch attr.Name {
		case "condition":
			rule.condition = attr.Expr
		case "error_message":
			value, diags := p.meter.evaluate(attr.Expr, nil)
			p.add(diags...)
			if !diags.HasErrors() && value.Type() == cty.String && !value.IsNull() {
				rule.message = value.AsString()
			}
		default:
			p.add(unknownAttribute(attr, "in a validation block", []string{"condition", "error_message"}))
		}
	}
	if rule.condition == nil || rule.message == "" {
		p.add(errorAt(block.DefRange(), "Incomplete validation", "A validation block needs condition and error_message."))
		return nil
	}
	return rule
}

func (p *parser) convert(v *variable, value cty.Value, rng hcl.Range) cty.Value {
	if v.collection && !value.IsNull() && !value.Type().IsTupleType() && !value.Type().IsObjectType() {
		p.add(errorAt(rng, fmt.Sprintf("Invalid value for variable %q", v.name),
			"The variable has no type, and its default is a list or an object: its value must be one too."))
		return cty.DynamicVal
	}
	if v.typ == cty.DynamicPseudoType {
		return value
	}
	out, err := convert.Convert(value, v.typ)
	if err != nil {
		p.add(errorAt(rng, fmt.Sprintf("Invalid value for variable %q", v.name),
			"The value does not fit its type %s: %s.", typeexpr.TypeString(v.typ), err))
		return cty.DynamicVal
	}
	return out
}

func (p *parser) fromEnvironment() {
	for _, word := range p.cfg.Env {
		name, text, ok := strings.Cut(word, "=")
		name, isVar := strings.CutPrefix(name, envPrefix)
		if !ok || !isVar {
			continue
		}
		v := p.lookup(name)
		if v == nil {
			continue // the environment may carry values for other jobs
		}
		p.setText(v, text, "<value for var."+name+" from environment>")
		v.env, v.envValue = text, v.value
	}
}

// environment gives the values which the environment had the last word on.
func (p *parser) environment() map[string]string {
	out := map[string]string{}
	for _, v := range p.vars {
		if v.envValue != cty.NilVal && v.value.RawEquals(v.envValue) {
			out[v.name] = v.env
		}
	}
	return out
}

// fileVariables gives what the variable files together have set as the text of one file: its own text if it was one.
func (p *parser) fileVariables() string {
	if len(p.varTexts) == 1 {
		return p.varTexts[0]
	}
	file := hclwrite.NewEmptyFile()
	for _, v := range p.vars {
		if v.fileValue != cty.NilVal {
			file.Body().SetAttributeValue(v.name, v.fileValue)
		}
	}
	return string(file.Bytes())
}

func (p *parser) fromArguments() {
	for _, word := range p.cfg.Vars {
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			p.add(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid -var argument",
				Detail: fmt.Sprintf("%q is not of the form NAME=VALUE.", word)})
			continue
		}
		v := p.lookup(name)
		if v == nil {
			p.undeclared(name, "the -var argument", nil)
			continue
		}
		p.setText(v, text, "<value for var."+name+" from arguments>")
	}
}

func (p *parser) undeclared(name, where string, rng *hcl.Range) {
	known := make([]string, 0, len(p.vars))
	for _, v := range p.vars {
		known = append(known, v.name)
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Undeclared variable", Subject: rng,
		Detail: fmt.Sprintf("The variable %q, set by %s, is not declared in the jobspec.%s", name, where, suggestion(name, known))}
	if !p.cfg.Strict {
		d.Severity = hcl.DiagWarning
	}
	p.add(d)
}

// wants names the kind of value that a variable takes.
func (v *variable) wants() string {
	if v.typ == cty.DynamicPseudoType {
		return "a list or an object"
	}
	return "a value of type " + typeexpr.TypeString(v.typ)
}

// setText sets a variable from a word: text for strings and variables of an unknown type, an expression for others.
func (p *parser) setText(v *variable, text, filename string) {
	if v.typ == cty.String || v.typ == cty.DynamicPseudoType && !v.collection {
		v.value, v.set, v.setRange = cty.StringVal(text), true, nil
		return
	}
	v.value, v.set, v.setRange = cty.DynamicVal, true, nil // a faulty value is no missing one
	p.files[filename] = &hcl.File{Bytes: []byte(text)}
	if fault := Unreadable([]byte(text), filename); fault != nil {
		p.add(fault)
		return
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), filename, hcl.InitialPos)
	if diags.HasErrors() {
		p.add(diags...)
		return
	}
	if len(expr.Variables()) > 0 { // a word without quotes
		p.add(errorAt(expr.Range(), fmt.Sprintf("Invalid value for variable %q", v.name),
			"It needs %s, and %q is none. References are not possible here; text inside of a value needs quotes.", v.wants(), text))
		return
	}
	value, diags := p.meter.evaluate(expr, nil)
	if diags.HasErrors() {
		p.add(diags...)
		return
	}
	rng := expr.Range()
	v.value, v.set, v.setRange = p.convert(v, value, rng), true, &rng
}

func (p *parser) fromFile(path string) {
	full := path
	if p.cfg.BaseDir != "" && !filepath.IsAbs(path) {
		full = filepath.Join(p.cfg.BaseDir, path)
	}
	body, err := os.ReadFile(full)
	if err != nil {
		p.add(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot read variable file", Detail: err.Error()})
		return
	}
	p.varTexts = append(p.varTexts, string(body))
	p.fromContent(path, body)
}

func (p *parser) fromContent(name string, body []byte) {
	var file *hcl.File
	var diags hcl.Diagnostics
	body = withoutMark(body)
	if fault := Unreadable(body, name); fault != nil {
		p.files[name] = &hcl.File{Bytes: body}
		p.add(fault)
		return
	}
	if strings.HasSuffix(name, ".json") || IsJSON(body) {
		file, diags = json.Parse(body, name)
	} else {
		file, diags = hclsyntax.ParseConfig(body, name, hcl.InitialPos)
	}
	if file != nil {
		p.files[name] = file
	}
	p.add(diags...)
	if diags.HasErrors() {
		return
	}
	attrs, diags := file.Body.JustAttributes()
	p.add(diags...)
	for _, attr := range attrs {
		v := p.lookup(attr.Name)
		if v == nil {
			rng := attr.NameRange
			p.undeclared(attr.Name, "the file "+name, &rng)
			continue
		}
		rng := attr.Expr.Range()
		v.value, v.set, v.setRange = cty.DynamicVal, true, &rng
		value, diags := p.meter.evaluate(attr.Expr, nil)
		p.add(diags...)
		if !diags.HasErrors() {
			v.value = p.convert(v, value, rng)
			v.fileValue = v.value
		}
	}
}

func (p *parser) finalValue(v *variable) cty.Value {
	switch {
	case v.set:
		return v.value
	case v.hasDefault:
		return v.def
	}
	p.add(errorAt(v.declared, fmt.Sprintf("No value for variable %q", v.name),
		"The variable has no default. Give it a value with -var %s=VALUE, -var-file=FILE or the environment variable %s%s.",
		v.name, envPrefix, v.name))
	return cty.DynamicVal
}

func (p *parser) validate(v *variable) {
	for _, rule := range v.validations {
		result, diags := p.meter.evaluate(rule.condition, p.root)
		p.add(diags...)
		if diags.HasErrors() || !result.IsKnown() {
			continue
		}
		result, err := convert.Convert(result, cty.Bool)
		if err != nil || result.IsNull() {
			p.add(errorAt(rule.condition.Range(), "Invalid validation", "The condition must give true or false."))
			continue
		}
		if result.False() {
			rng := v.declared
			switch {
			case v.setRange != nil:
				rng = *v.setRange
			case !v.set && v.defRange != nil:
				rng = *v.defRange
			}
			p.add(errorAt(rng, fmt.Sprintf("Invalid value for variable %q", v.name), "%s", rule.message))
		}
	}
}
