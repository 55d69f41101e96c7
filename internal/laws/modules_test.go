package laws

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goMod is go.mod as `go mod edit -json` tells it.
type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool []struct{ Path string }
}

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// shortName is how the documentation calls a module.
func shortName(path string) string {
	return strings.TrimPrefix(majorVersion.ReplaceAllString(path, ""), "github.com/")
}

// owner is the module of a list that a package belongs to.
func owner(modules []string, importPath string) string {
	best := ""
	for _, m := range modules {
		if (importPath == m || strings.HasPrefix(importPath, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// direct are the modules that our own packages, or go.mod's tools, use.
func direct(mod *goMod, packages []*pkg) map[string]bool {
	var all []string
	for _, r := range mod.Require {
		all = append(all, r.Path)
	}
	used := map[string]bool{}
	for _, p := range packages {
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if m := owner(all, imp); m != "" {
				used[m] = true
			}
		}
	}
	return used
}

// moduleFaults compares what is imported, what go.mod requires, and what the documentation explains.
func moduleFaults(mod *goMod, packages []*pkg, page string) []string {
	var faults, all []string
	imported := direct(mod, packages)
	want := map[string]bool{}
	for _, r := range mod.Require {
		all = append(all, r.Path)
		if imported[r.Path] {
			want[shortName(r.Path)] = true
		}
		if imported[r.Path] == r.Indirect {
			faults = append(faults, fmt.Sprintf("go.mod says indirect=%v of %s, imported=%v: run go mod tidy",
				r.Indirect, r.Path, imported[r.Path]))
		}
	}
	for _, tool := range mod.Tool {
		want[shortName(owner(all, tool.Path))] = true
	}
	explained := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "module" {
			continue
		}
		names := cells[1]
		if _, after, found := strings.Cut(names, ":"); found {
			names = after
		}
		for name := range strings.SplitSeq(names, ",") {
			explained[majorVersion.ReplaceAllString(strings.TrimSpace(name), "")] = true
		}
	}
	for name := range want {
		if !explained[name] {
			faults = append(faults, name+" has no line in docs/dependencies.md")
		}
	}
	for name := range explained {
		if !want[name] {
			faults = append(faults, name+" is explained in docs/dependencies.md, and nothing uses it")
		}
	}
	return faults
}

func TestEachModuleIsExplained(t *testing.T) {
	l := tree(t)
	top := filepath.Join("..", "..")
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(top, "go.mod")).Output()
	if err != nil {
		t.Fatal(err)
	}
	mod := &goMod{}
	if err := json.Unmarshal(out, mod); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(top, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range moduleFaults(mod, l.packages, string(page)) {
		t.Error(f)
	}
}

func TestEachModuleIsExplainedFindsFaults(t *testing.T) {
	mod := &goMod{}
	text := `{"Require": [{"Path": "github.com/a/explained/v2"}, {"Path": "example.org/silent"},
		{"Path": "github.com/a/unused"}, {"Path": "github.com/a/far", "Indirect": true}, {"Path": "example.org/tool", "Indirect": true}],
		"Tool": [{"Path": "example.org/tool/cmd/x"}]}`
	if err := json.Unmarshal([]byte(text), mod); err != nil {
		t.Fatal(err)
	}
	packages := []*pkg{{Imports: []string{"github.com/a/explained/v2/sub"}, XTestImports: []string{"example.org/silent"}}}
	page := "| module | what for | else | cost |\n|---|---|---|---|\n| tests only: a/explained, a/gone | x | y | z |\n"
	// silent and the tool have no line, a/gone is not used, a/unused is required as direct.
	wantFaults(t, 4, moduleFaults(mod, packages, page))
}
