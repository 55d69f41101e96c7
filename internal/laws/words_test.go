package laws

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEachPackageSaysWhatItIs(t *testing.T) {
	for _, p := range tree(t).packages {
		if len(p.GoFiles) > 0 && len(p.Doc) < 20 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// docFaults finds exported names without a comment. A group's comment serves its members; a struct's fields, and the
// methods by which a type satisfies a well-known interface, speak for themselves.
func docFaults(s *source) []string {
	if s.test {
		return nil
	}
	var faults []string
	missing := func(n ast.Node, name string) {
		faults = append(faults, fmt.Sprintf("%s: %s has no comment", s.at(n), name))
	}
	for _, d := range s.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			recv, method, isMethod := strings.Cut(funcName(d), ".")
			exported := d.Name.IsExported() && (!isMethod || ast.IsExported(recv))
			if exported && d.Doc == nil && !wellKnown[method] {
				missing(d, funcName(d))
			}
		case *ast.GenDecl:
			if d.Doc != nil || d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && spec.Doc == nil && spec.Comment == nil {
						missing(spec, spec.Name.Name)
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() && spec.Doc == nil && spec.Comment == nil {
						missing(spec, spec.Names[0].Name)
					}
				}
			}
		}
	}
	return faults
}

// wellKnown are methods whose interface says all there is to say.
var wellKnown = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "String": true, "GoString": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true, "MarshalCBOR": true, "UnmarshalCBOR": true,
	"Read": true, "Write": true, "Close": true, "ReadFrom": true, "WriteTo": true, "ReadByte": true,
	"Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true,
	"ServeHTTP": true, "Header": true, "WriteHeader": true, "Flush": true, "FlushError": true,
	"LocalAddr": true, "RemoteAddr": true, "SetDeadline": true, "SetReadDeadline": true, "SetWriteDeadline": true,
	"Accept": true, "Addr": true, "Network": true, "RoundTrip": true,
	"Help": true, "Synopsis": true, "Run": true,
}

func TestExportedNamesSayWhatTheyAre(t *testing.T) { check(t, docFaults) }

func TestExportedNamesSayWhatTheyAreFindsFaults(t *testing.T) {
	bad := parse(t, &pkg{ImportPath: module + "/x", Name: "x"}, "x.go", `package x
type T struct{}
func F() {}
func (T) M() {}
func (t) M() {}
func (T) Error() string { return "" }
const A = 1
// One and Two.
const ( One = 1; Two = 2 )
`)
	wantFaults(t, 4, docFaults(bad))
}

// unfinished are the words of work that somebody put off, and of the machine on which it was done. The pattern is
// written in pieces so that it does not find itself.
var unfinished = regexp.MustCompile(`(^|[^.\w])(TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b|\bfor` + ` now\b|(^|[^a-zA-Z0-9_])/(ho` + `me|Us` + `ers)/[a-z]`)

func wordFaults(name, text string) []string {
	var faults []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		if found := unfinished.FindString(line); found != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: %q", name, n, found))
		}
	}
	return faults
}

func TestNothingIsPutOff(t *testing.T) {
	top := filepath.Join("..", "..")
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		t.Skipf("the files are those of git, which does not answer: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		switch filepath.Ext(name) {
		case ".go", ".md", ".sh", ".hcl", ".yml", ".yaml", "":
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if os.IsNotExist(err) { // removed, and not committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range wordFaults(name, string(text)) {
			t.Error(f)
		}
	}
}

func TestNothingIsPutOffFindsFaults(t *testing.T) {
	bad := "// TO" + "DO: later\nfine\n// this is enough for" + " now\npath = \"/ho" + "me/someone\"\n"
	wantFaults(t, 3, wordFaults("bad.go", bad))
}
