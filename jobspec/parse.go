package jobspec

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadlite/nomadlite/structs"
)

// Config is one jobspec with the values of its variables.
type Config struct {
	// Path names the file in messages; file functions are relative to BaseDir.
	Path string
	Body []byte
	// BaseDir is the folder to which file() and fileset() are relative; empty means the working directory.
	BaseDir string
	// AllowFS permits the functions that read files. The parse endpoint of a server does not.
	AllowFS bool
	// Vars are arguments "name=value", in order; the last one counts.
	Vars []string
	// VarFiles are paths of variable files, in order; the last one counts.
	VarFiles []string
	// VarContent is the text of one more variable file, as the API's parse request carries it.
	VarContent string
	// Env are "NAME=VALUE" words; those that begin with NOMAD_VAR_ set variables.
	Env []string
	// Strict makes a value for an undeclared variable an error.
	Strict bool
}

// Result is what parsing gives.
type Result struct {
	Job *structs.Job
	// Warnings tell what the text says but has no effect, or what is deprecated.
	Warnings hcl.Diagnostics
	// Files are the sources by name, to show lines in messages.
	Files map[string]*hcl.File
	// Environment are the values of variables that come from the environment, as they stand there.
	Environment map[string]string
	// FileVariables is the text of one variable file which sets what all of Config.VarFiles set.
	FileVariables string
}

// Parse reads a jobspec. The error, when there is one, is *Error and lists all faults with their positions.
func Parse(cfg Config) (*Result, error) { return parseWithin(cfg, evaluationBudget) }

func parseWithin(cfg Config, budget int) (*Result, error) {
	if cfg.Path == "" {
		cfg.Path = "input.hcl"
	}
	cfg.Body = withoutMark(cfg.Body)
	if IsJSON(cfg.Body) {
		return parseJSON(cfg)
	}
	p := &parser{cfg: cfg, files: map[string]*hcl.File{}, refs: newReferences(), meter: &meter{left: budget}}
	if fault := p.meter.guard(p.parse); fault != nil {
		p.diags = append(hcl.Diagnostics{fault}, p.diags...)
	}
	if p.diags.HasErrors() {
		return nil, &Error{Diags: p.diags, Files: p.files}
	}
	return &Result{Job: p.job, Warnings: p.diags, Files: p.files, Environment: p.environment(), FileVariables: p.fileVariables()}, nil
}

// ParseFile reads the jobspec at path, "-" being standard input.
func ParseFile(cfg Config) (*Result, error) {
	body, err := os.ReadFile(cfg.Path)
	if err != nil {
		return nil, err
	}
	cfg.Body = body
	cfg.Path = filepath.ToSlash(cfg.Path)
	return Parse(cfg)
}

// parser holds one run over one jobspec.
type parser struct {
	cfg      Config
	files    map[string]*hcl.File
	diags    hcl.Diagnostics
	refs     *references
	meter    *meter
	vars     []*variable
	varTexts []string // of the variable files
	root     *hcl.EvalContext
	job      *structs.Job
}

func (p *parser) parse() {
	body := bytes.TrimPrefix(p.cfg.Body, []byte("\xef\xbb\xbf"))
	if fault := Unreadable(body, p.cfg.Path); fault != nil {
		p.files[p.cfg.Path] = &hcl.File{Bytes: body}
		p.add(fault)
		return
	}
	file, diags := hclsyntax.ParseConfig(body, p.cfg.Path, hcl.InitialPos)
	p.add(diags...)
	if file == nil {
		return
	}
	p.files[p.cfg.Path] = file
	if diags.HasErrors() {
		return
	}
	top := p.topLevel(file.Body.(*hclsyntax.Body))
	p.root = &hcl.EvalContext{Functions: functions(p.cfg.BaseDir, p.cfg.AllowFS, p.meter)}
	p.readVariables(top)
	p.readLocals(top)
	if top.job == nil {
		p.add(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Missing job block",
			Detail: `A jobspec needs one block job "NAME" { ... }.`})
		return
	}
	p.refs.rewriteBody(top.job.Body, file.Bytes, names{}, true)
	p.refs.publish(p.root)
	p.meter.body(top.job.Body)
	d := &decoder{root: p.root, meter: p.meter, schemas: map[reflect.Type]*schema{}, lenient: p.diags.HasErrors()}
	p.job = d.job(top.job)
	p.add(d.diags...)
}

func (p *parser) add(diags ...*hcl.Diagnostic) { p.diags = append(p.diags, diags...) }

// topLevel is the sorted content of a file.
type topLevel struct {
	src       []byte
	job       *hclsyntax.Block
	variables []*hclsyntax.Block
	untyped   []*hclsyntax.Block
	locals    []*hclsyntax.Block
}

func (p *parser) topLevel(body *hclsyntax.Body) *topLevel {
	top := &topLevel{src: p.files[p.cfg.Path].Bytes}
	for _, attr := range sortedAttributes(body.Attributes) {
		p.add(unknownAttribute(attr, "at the top level", []string{"job", "variable", "variables", "locals"}))
	}
	for _, block := range body.Blocks {
		switch block.Type {
		case "job":
			if top.job != nil {
				p.add(duplicateBlock(block, top.job.DefRange()))
				continue
			}
			top.job = block
		case "variable":
			top.variables = append(top.variables, block)
		case "variables":
			top.untyped = append(top.untyped, block)
		case "locals":
			top.locals = append(top.locals, block)
		default:
			p.add(unknownBlock(block, "at the top level", []string{"job", "variable", "variables", "locals"}))
		}
	}
	return top
}
