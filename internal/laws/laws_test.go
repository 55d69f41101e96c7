package laws

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/nomadlite/nomadlite"

type pkg struct {
	ImportPath  string
	Dir         string
	Doc         string
	Name        string
	GoFiles     []string
	TestGoFiles []string
	Imports     []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Name,GoFiles,TestGoFiles,Imports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// allowed maps a top-level room to the rooms which it may import. A room may always import itself.
var allowed = map[string][]string{
	"structs":   {},
	"jobspec":   {"structs"},
	"scheduler": {"structs"},
	"nomadlite": {"structs", "jobspec", "scheduler", "internal"},
	"client":    {"structs", "internal"},
	"api":       {"structs"},
	"internal":  {"structs"},
	"command":   {"structs", "jobspec", "scheduler", "nomadlite", "client", "api", "internal"},
	"e2e":       {"api", "structs"},
	"examples":  {},
	"":          {"command", "client", "structs"}, // main.go
}

// exceptions give single packages more than their room has: the simulated nodes speak the node protocol through the
// very code of the agent, or else they would prove nothing.
var exceptions = map[string][]string{
	"e2e/nodesim/sim": {"client/servers", "structs"},
}

// excepted says whether a package's exception lets it import another.
func excepted(from, imported string) bool {
	for _, prefix := range exceptions[strings.TrimPrefix(from, module+"/")] {
		if rest, ok := strings.CutPrefix(imported, module+"/"+prefix); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

func room(importPath string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	top, _, _ := strings.Cut(rest, "/")
	return top
}

func importFaults(all []pkg) []string {
	var faults []string
	for _, p := range all {
		from := room(p.ImportPath)
		may, known := allowed[from]
		if !known {
			faults = append(faults, fmt.Sprintf("%s is in a folder which the laws do not know", p.ImportPath))
			continue
		}
		for _, imp := range p.Imports {
			if imp != module && !strings.HasPrefix(imp, module+"/") {
				continue
			}
			to := room(imp)
			ok := to == from || excepted(p.ImportPath, imp)
			for _, m := range may {
				ok = ok || m == to
			}
			if !ok {
				faults = append(faults, fmt.Sprintf("%s must not import %s", p.ImportPath, imp))
			}
		}
	}
	return faults
}

func TestImportLaws(t *testing.T) {
	for _, f := range importFaults(packages(t)) {
		t.Error(f)
	}
}

func TestImportLawsFindAFault(t *testing.T) {
	bad := []pkg{
		{ImportPath: module + "/client/x", Imports: []string{module + "/nomadlite/state"}},
		{ImportPath: module + "/structs", Imports: []string{module + "/internal/codec"}},
		{ImportPath: module + "/helpers"},
		{ImportPath: module + "/e2e/nodesim", Imports: []string{module + "/client/servers"}},
		{ImportPath: module + "/e2e/nodesim/sim", Imports: []string{module + "/client/servers", module + "/client"}},
	}
	if got := importFaults(bad); len(got) != 5 {
		t.Fatalf("want 5 faults, got %v", got)
	}
}

func TestEachPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 20 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// TestBannedConstructs keeps init functions, text-matched errors' favourite file names, and I/O or clocks in pure
// rooms out of the tree.
func TestBannedConstructs(t *testing.T) {
	bannedNames := map[string]bool{"util.go": true, "utils.go": true, "helpers.go": true, "helper.go": true,
		"common.go": true, "structs.go": true, "manager.go": true, "misc.go": true}
	fset := token.NewFileSet()
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			if bannedNames[name] {
				t.Errorf("%s/%s: name the noun", p.ImportPath, name)
			}
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: no init functions", fset.Position(fn.Pos()))
				}
			}
		}
	}
}

// pureRooms decide without clocks, files, sockets or chance; their drivers hand these in.
var pureRooms = []string{"structs", "scheduler", "nomadlite/fsm"}

func TestPureRoomsDoNoIO(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		pure := false
		for _, r := range pureRooms {
			pure = pure || rel == r || strings.HasPrefix(rel, r+"/")
		}
		if !pure || strings.HasSuffix(p.Name, "test") {
			continue
		}
		for _, imp := range p.Imports {
			switch imp {
			case "os", "net", "os/exec", "math/rand", "math/rand/v2", "crypto/rand":
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					switch sel.Sel.Name {
					case "Now", "Sleep", "After", "NewTimer", "NewTicker", "Since", "Until":
						t.Errorf("%s: a pure room asks no clock", fset.Position(sel.Pos()))
					}
				}
				return true
			})
		}
	}
}

// TestNoSleepsInTests keeps the habit that tests await events.
func TestNoSleepsInTests(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range packages(t) {
		for _, name := range p.TestGoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			synctest := false
			for _, imp := range file.Imports {
				synctest = synctest || imp.Path.Value == `"testing/synctest"`
			}
			if synctest { // virtual time: a sleep is the way to advance it
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
						t.Errorf("%s: await an event instead of sleeping", fset.Position(sel.Pos()))
					}
				}
				return true
			})
		}
	}
}
