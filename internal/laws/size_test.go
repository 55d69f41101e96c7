package laws

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
	"unicode/utf8"
)

// Where a piece grows past these it is two things. They hold for tests too.
const (
	longestFunction  = 100 // lines
	longestFile      = 800 // lines
	longestLine      = 140 // characters; in tests, whose tables are read in columns, not counted
	largestInterface = 8   // methods; those of embedded interfaces are counted where they stand
)

// mayBeLong are functions that would read worse in pieces, with the reason.
var mayBeLong = map[string]string{}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

func sizeFaults(s *source) []string {
	var faults []string
	if n := s.set.File(s.Pos()).LineCount(); n > longestFile {
		faults = append(faults, fmt.Sprintf("%s has %d lines of at most %d", s.name, n, longestFile))
	}
	for i, line := range strings.Split(s.text, "\n") {
		if n := utf8.RuneCountInString(line); n > longestLine && !s.test {
			faults = append(faults, fmt.Sprintf("%s:%d has %d characters of at most %d", s.name, i+1, n, longestLine))
		}
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			if got := s.lines(d); got > longestFunction && mayBeLong[s.pkg.rel()+"."+funcName(d)] == "" {
				faults = append(faults, fmt.Sprintf("%s: %s has %d lines of at most %d", s.at(d), funcName(d), got, longestFunction))
			}
		case *ast.InterfaceType:
			methods := 0
			for _, m := range d.Methods.List {
				methods += len(m.Names)
			}
			if methods > largestInterface {
				faults = append(faults, fmt.Sprintf("%s: %d methods of at most %d", s.at(d), methods, largestInterface))
			}
		}
		return true
	})
	return faults
}

func TestNothingGrowsTooLarge(t *testing.T) {
	check(t, sizeFaults)
	seen := map[string]int{}
	for _, s := range tree(t).sources {
		for _, d := range s.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				seen[s.pkg.rel()+"."+funcName(fn)] = s.lines(fn)
			}
		}
	}
	for name := range mayBeLong {
		if seen[name] <= longestFunction {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

func TestNothingGrowsTooLargeFindsFaults(t *testing.T) {
	var long []byte
	for range longestFile {
		long = append(long, '\n')
	}
	p := &pkg{ImportPath: module + "/x"}
	bad := parse(t, p, "bad.go", "package x\ntype i interface { A(); B(); C(); D(); E(); F(); G(); H(); I() }\nfunc f() {"+string(long)+"}\n//"+
		strings.Repeat("é", longestLine))
	wantFaults(t, 4, sizeFaults(bad))
}
