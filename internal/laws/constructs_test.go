package laws

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// emptyNames are file names that name no noun.
var emptyNames = []string{"util", "utils", "helpers", "helper", "common", "structs", "manager", "misc"}

// maySleep are functions that wait for what tells nobody, with the reason.
var maySleep = map[string]string{
	"command/agent.lockDataDir":  "the kernel's file locks can be awaited, but not given up again",
	"client/supervisor.lockDead": "the kernel's file locks can be awaited, but not given up again",
}

// constructFaults finds what product code must not have: files without a noun, init functions, sleeps, contexts
// that nobody decided upon, and errors told apart by their text.
func constructFaults(s *source) []string {
	var faults []string
	stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.name), ".go"), "_test")
	if slices.Contains(emptyNames, stem) {
		faults = append(faults, s.name+": name the noun")
	}
	for _, d := range s.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			faults = append(faults, s.at(fn)+": no init functions")
		}
	}
	if s.test {
		return faults
	}
	for _, d := range s.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || maySleep[s.pkg.rel()+"."+funcName(fn)] != "" {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if where, name := call(n); where == "time" && name == "Sleep" {
				faults = append(faults, s.at(n)+": await an event or a timer beside the context instead of sleeping")
			}
			return true
		})
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch where, name := call(n); where + "." + name {
		case "context.TODO":
			faults = append(faults, s.at(n)+": take the caller's context")
		case "strings.Contains", "strings.HasPrefix", "strings.HasSuffix", "strings.EqualFold":
			if slices.ContainsFunc(n.(*ast.CallExpr).Args, isErrorText) && !s.pkg.forTests() {
				faults = append(faults, s.at(n)+": tell errors apart by their code")
			}
		}
		if cmp, ok := n.(*ast.BinaryExpr); ok && (cmp.Op == token.EQL || cmp.Op == token.NEQ) && !s.pkg.forTests() &&
			(isErrorText(cmp.X) && !isNil(cmp.Y) || isErrorText(cmp.Y) && !isNil(cmp.X)) {
			faults = append(faults, s.at(n)+": tell errors apart by their code")
		}
		return true
	})
	return faults
}

// isErrorText says whether an expression is the text of an error.
func isErrorText(e ast.Expr) bool {
	if sel, ok := e.(*ast.SelectorExpr); ok && sel.Sel.Name == "Err" {
		return true // of a net.AddrError
	}
	c, ok := e.(*ast.CallExpr)
	if !ok || len(c.Args) != 0 {
		return false
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Error"
}

// isNil tells the error of a future (f.Error() != nil) from a text.
func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

func TestBannedConstructs(t *testing.T) {
	check(t, constructFaults)
	sleeping := map[string]bool{}
	for _, s := range tree(t).sources {
		for _, d := range s.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if where, name := call(n); where == "time" && name == "Sleep" {
					sleeping[s.pkg.rel()+"."+funcName(fn)] = true
				}
				return true
			})
		}
	}
	for name := range maySleep {
		if !sleeping[name] {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

func TestBannedConstructsFindFaults(t *testing.T) {
	p := &pkg{ImportPath: module + "/x", Name: "x"}
	bad := parse(t, p, "util.go", `package x
func init() { time.Sleep(1); _ = context.TODO() }
func f() bool { return strings.Contains(err.Error(), "gone") || strings.HasPrefix(addr.Err, "missing") || err.Error() == "gone" || f.Error() == nil }
func (g) init() {}
`)
	wantFaults(t, 7, constructFaults(bad))
}

// pureRooms decide without clocks, files, sockets or chance; their drivers hand these in. A file stands for itself.
var pureRooms = []string{
	"structs", "scheduler", "nomadlite/fsm", "nomadlite/state", "client/restart", "client/gc", "client/lease",
	"client/allocrunner/core.go",
	"nomadlite/broker/queue.go", "nomadlite/broker/blocked.go", "nomadlite/broker/heap.go",
	"nomadlite/deploy/rollouts.go", "nomadlite/drain/drains.go", "nomadlite/drain/group.go", "nomadlite/drain/look.go",
	"nomadlite/gc/find.go", "nomadlite/heartbeat/timers.go", "nomadlite/heartbeat/watch.go",
	"nomadlite/periodic/schedules.go",
	"nomadlite/plan/fit.go", "nomadlite/plan/overlay.go", "nomadlite/plan/verify.go", "nomadlite/session/delta.go",
}

func pure(s *source) bool {
	return !s.test && !s.pkg.forTests() && slices.ContainsFunc(pureRooms, func(r string) bool {
		return s.name == r || strings.HasPrefix(s.name, r+"/")
	})
}

// outside are the ways to the world in packages that a pure room may otherwise use, as for the parts of an address.
var outside = map[string]bool{
	"time.Now": true, "time.Sleep": true, "time.After": true, "time.AfterFunc": true, "time.NewTimer": true,
	"time.NewTicker": true, "time.Tick": true, "time.Since": true, "time.Until": true,
	"net.Dial": true, "net.DialTimeout": true, "net.Dialer": true, "net.Listen": true, "net.LookupHost": true,
	"net.LookupIP": true, "net.Interfaces": true, "net.InterfaceAddrs": true,
	"http.Get": true, "http.Post": true, "http.Client": true, "http.DefaultClient": true, "http.ListenAndServe": true,
}

func purityFaults(s *source) []string {
	if !pure(s) {
		return nil
	}
	var faults []string
	for _, imp := range []string{"os", "os/exec", "math/rand", "math/rand/v2", "crypto/rand"} {
		if s.imports(imp) {
			faults = append(faults, fmt.Sprintf("%s: a pure room does not import %s", s.name, imp))
		}
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := x.X.(*ast.Ident); ok && outside[id.Name+"."+x.Sel.Name] {
			faults = append(faults, fmt.Sprintf("%s: a pure room does not use %s.%s", s.at(n), id.Name, x.Sel.Name))
		}
		return true
	})
	return faults
}

func TestPureRooms(t *testing.T) {
	check(t, purityFaults)
	for _, r := range pureRooms {
		if !slices.ContainsFunc(tree(t).sources, func(s *source) bool { return s.name == r || strings.HasPrefix(s.name, r+"/") }) {
			t.Errorf("%s is no room or file", r)
		}
	}
}

func TestPureRoomsFindFaults(t *testing.T) {
	p := &pkg{ImportPath: module + "/scheduler", Name: "scheduler"}
	bad := parse(t, p, "scheduler/x.go", `package scheduler
import ("net"; "os"; "time")
var now = time.Now
var _ = os.Args
var _, _, _ = net.SplitHostPort("a:1")
`)
	wantFaults(t, 2, purityFaults(bad))
}

// globals are the package-level variables of each package's product code.
func globals(sources []*source) map[*pkg]map[string]bool {
	all := map[*pkg]map[string]bool{}
	for _, s := range sources {
		if s.test {
			continue
		}
		for _, d := range s.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if all[s.pkg] == nil {
						all[s.pkg] = map[string]bool{}
					}
					all[s.pkg][name.Name] = true
				}
			}
		}
	}
	return all
}

// stateFaults finds package-level variables that a function writes to: two servers in one process would share them.
func stateFaults(s *source, vars map[string]bool) []string {
	if s.test {
		return nil
	}
	var faults []string
	written := func(e ast.Expr, n ast.Node) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				e = x.X
				continue
			case *ast.StarExpr:
				e = x.X
				continue
			case *ast.Ident:
				local := x.Obj != nil && s.Scope.Lookup(x.Name) != x.Obj
				if vars[x.Name] && !local && x.Name != "_" {
					faults = append(faults, fmt.Sprintf("%s: writes the package's variable %s", s.at(n), x.Name))
				}
			}
			return
		}
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for _, e := range x.Lhs {
				if x.Tok != token.DEFINE {
					written(e, n)
				}
			}
		case *ast.IncDecStmt:
			written(x.X, n)
		}
		return true
	})
	return faults
}

func TestNoPackageLevelState(t *testing.T) {
	sources := tree(t).sources
	vars := globals(sources)
	for _, s := range sources {
		for _, f := range stateFaults(s, vars[s.pkg]) {
			t.Error(f)
		}
	}
}

func TestNoPackageLevelStateFindsFaults(t *testing.T) {
	p := &pkg{ImportPath: module + "/x", Name: "x"}
	bad := parse(t, p, "x.go", `package x
var count int
var seen = map[string]bool{}
func f() { count++; seen["a"] = true }
func g() { count := 1; count++; var seen map[string]bool; seen["a"] = true }
`)
	wantFaults(t, 2, stateFaults(bad, globals([]*source{bad})[p]))
}
