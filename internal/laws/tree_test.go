package laws

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/nomadlite/nomadlite"

// pkg is a package as `go list` tells it. The files that its build constraints leave out here count as well.
type pkg struct {
	ImportPath     string
	Dir            string
	Doc            string
	Name           string
	GoFiles        []string
	IgnoredGoFiles []string
	TestGoFiles    []string
	XTestGoFiles   []string
	Imports        []string
	TestImports    []string
	XTestImports   []string
}

// rel is the package's folder below the top, "" for the top itself.
func (p *pkg) rel() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// forTests says whether a package only serves tests, as the suites and fakes that several packages share do.
func (p *pkg) forTests() bool {
	return strings.HasSuffix(p.Name, "test") || strings.HasPrefix(p.Name, "fake") || p.room() == "e2e"
}

// room is the top-level folder of a package.
func (p *pkg) room() string { return room(p.ImportPath) }

func room(importPath string) string {
	top, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/"), "/")
	return top
}

// source is one parsed file.
type source struct {
	pkg  *pkg
	name string // below the top of the tree
	test bool   // a _test file
	text string
	set  *token.FileSet
	*ast.File
}

// at says where a node stands.
func (s *source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.name, s.set.Position(n.Pos()).Line)
}

// lines is how many lines a node takes.
func (s *source) lines(n ast.Node) int {
	return s.set.Position(n.End()).Line - s.set.Position(n.Pos()).Line + 1
}

func (s *source) imports(path string) bool {
	for _, imp := range s.Imports {
		if imp.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}

// parse makes a source of a text, for the tests that break a law.
func parse(t *testing.T, p *pkg, name, text string) *source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &source{pkg: p, name: name, test: strings.HasSuffix(name, "_test.go"), text: text, set: set, File: file}
}

type listing struct {
	packages []*pkg
	sources  []*source
}

// load reads the tree once for all laws.
var load = sync.OnceValues(func() (*listing, error) {
	fields := "ImportPath,Dir,Doc,Name,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
	out, err := exec.Command("go", "list", "-json="+fields, module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	l := &listing{}
	set := token.NewFileSet()
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &pkg{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return l, nil
		} else if err != nil {
			return nil, fmt.Errorf("read list of packages: %w", err)
		}
		l.packages = append(l.packages, p)
		for _, names := range [][]string{p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range names {
				path := filepath.Join(p.Dir, name)
				text, err := os.ReadFile(path)
				if err != nil {
					return nil, fmt.Errorf("read source: %w", err)
				}
				file, err := parser.ParseFile(set, path, text, parser.ParseComments)
				if err != nil {
					return nil, fmt.Errorf("parse: %w", err)
				}
				l.sources = append(l.sources, &source{pkg: p, name: filepath.Join(p.rel(), name),
					test: strings.HasSuffix(name, "_test.go"), text: string(text), set: set, File: file})
			}
		}
	}
})

func tree(t *testing.T) *listing {
	t.Helper()
	l, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.packages) < 40 || len(l.sources) < 300 {
		t.Fatalf("found only %d packages and %d files", len(l.packages), len(l.sources))
	}
	return l
}

// call gives the package and the function of a call like time.Sleep(d), and "" for other calls.
func call(n ast.Node) (string, string) {
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return x.Name, sel.Sel.Name
}

// check applies a law to every file of the tree and reports what it finds.
func check(t *testing.T, law func(*source) []string) {
	t.Helper()
	for _, s := range tree(t).sources {
		for _, fault := range law(s) {
			t.Error(fault)
		}
	}
}

// wantFaults proves that a law finds what breaks it.
func wantFaults(t *testing.T, want int, got []string) {
	t.Helper()
	if len(got) != want {
		t.Errorf("want %d faults of the bad example, got %d: %q", want, len(got), got)
	}
}
