package laws

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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

// testExceptions do the same for the tests of a package alone: our own client drives the routes which it is made for,
// all pure cores play their scenarios in one way, and the tests of whole agents start the same container engine as those of
// the driver.
var testExceptions = map[string][]string{
	"nomadlite/endpoint":  {"api"},
	"e2e":                 {"client/drivertest"},
	"scheduler":           {"nomadlite/state"}, // benchmarks
	"scheduler/reconcile": {"internal/scenariotest"},
	wholeCluster:          {"nomadlite", "client", "scheduler", "internal"},
}

// wholeCluster is the one package that may see both sides, servers and nodes: it simulates a whole cluster, has nothing
// but tests, and nothing may import it.
const wholeCluster = "e2e/clustersim"

// testOnly are modules that no product code may depend on: the official client is a measure, and not a part.
var testOnly = []string{"github.com/hashicorp/nomad/api", "pgregory.net/rapid", "go.uber.org/goleak"}

// below says whether an import is one of some folders of ours, or lies below one.
func below(imported string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		rest, ok := strings.CutPrefix(imported, module+"/"+folder)
		return ok && (rest == "" || rest[0] == '/')
	})
}

func importFaults(p *pkg) []string {
	may, known := allowed[p.room()]
	if !known {
		return []string{fmt.Sprintf("%s is in a folder which the laws do not know", p.ImportPath)}
	}
	var faults []string
	judge := func(imports []string, extra []string, test bool) {
		for _, imp := range imports {
			if imp != module && !strings.HasPrefix(imp, module+"/") {
				if !test && !p.forTests() && slices.Contains(testOnly, imp) {
					faults = append(faults, fmt.Sprintf("%s must not import %s outside of its tests", p.ImportPath, imp))
				}
				continue
			}
			if below(imp, []string{wholeCluster}) {
				faults = append(faults, fmt.Sprintf("%s must not import %s", p.ImportPath, imp))
				continue
			}
			to := room(imp)
			if to != p.room() && !slices.Contains(may, to) && !below(imp, extra) {
				faults = append(faults, fmt.Sprintf("%s must not import %s", p.ImportPath, imp))
			}
		}
	}
	own := exceptions[p.rel()]
	judge(p.Imports, own, false)
	forTests := append(slices.Clone(own), testExceptions[p.rel()]...)
	judge(p.TestImports, forTests, true)
	judge(p.XTestImports, forTests, true)
	return faults
}

func TestImportLaws(t *testing.T) {
	for _, p := range tree(t).packages {
		for _, f := range importFaults(p) {
			t.Error(f)
		}
	}
}

func TestImportLawsFindAFault(t *testing.T) {
	bad := []*pkg{
		{ImportPath: module + "/client/x", Imports: []string{module + "/nomadlite/state"}},
		{ImportPath: module + "/client/x", XTestImports: []string{module + "/nomadlite/state"}},
		{ImportPath: module + "/structs", Imports: []string{module + "/internal/codec"}},
		{ImportPath: module + "/helpers"},
		{ImportPath: module + "/nomadlite/endpoint", Imports: []string{module + "/api"}, TestImports: []string{module + "/api"}},
		{ImportPath: module + "/structs", Imports: testOnly[:1], TestImports: testOnly},
		{ImportPath: module + "/e2e/nodesim", Imports: []string{module + "/client/servers"}},
		{ImportPath: module + "/e2e/nodesim/sim", Imports: []string{module + "/client/servers", module + "/client"}},
		{ImportPath: module + "/e2e", TestImports: []string{module + "/" + wholeCluster}},
		{ImportPath: module + "/" + wholeCluster, Imports: []string{module + "/client"}, TestImports: []string{module + "/client"}},
	}
	var got []string
	for _, p := range bad {
		got = append(got, importFaults(p)...)
	}
	wantFaults(t, 10, got)
}
