package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestNamespacesByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	a.prints([]string{"namespace", "apply", "-description", "for the team", "team"}, `Successfully applied namespace "team"!`)
	path := filepath.Join(t.TempDir(), "ns.hcl")
	text := "name        = \"other\"\ndescription = \"from a file\"\nmeta {\n  owner = \"sre\"\n}\n" +
		"capabilities {\n  enabled_task_drivers = [\"raw_exec\", \"exec\"]\n}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.ok("namespace", "apply", path)
	a.prints([]string{"namespace", "list"}, "default  ", "other    from a file", "team     for the team")
	a.prints([]string{"namespace", "status", "oth"}, "Description = from a file", "owner = sre", "Enabled Drivers        = raw_exec,exec")
	a.prints([]string{"namespace", "inspect", "-t", "{{.Description}}", "team"}, "for the team")
	a.prints([]string{"namespace", "inspect", "team"}, `"Name": "team"`)
	// What a flag does not name stays.
	a.ok("namespace", "apply", "-description=anew", "other")
	a.prints([]string{"namespace", "status", "other"}, "Description = anew", "owner = sre")
	if out, errs, code := a.cli(`{"Name": "third"}`, "namespace", "apply", "-json", "-"); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	a.refused("not supported", "namespace", "apply", "-quota=big", "team")
	a.refused("No namespace", "namespace", "status", "nope")
	if err := os.WriteFile(path, []byte("name = \"x\"\nnope = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.refused("ns.hcl:2", "namespace", "apply", path)

	j := sleeper("web", structs.JobTypeService, 1, nil)
	j.Namespace = structs.Ptr("team")
	if _, _, err := a.Client.Jobs().Register(limited(t), j, nil, nil); err != nil {
		t.Fatal(err)
	}
	a.refused("non-terminal", "namespace", "delete", "team")
	a.prints([]string{"namespace", "delete", "third"}, `Successfully deleted namespace "third"!`)
	a.refused("not found", "namespace", "delete", "third")
	a.ok("job", "stop", "-namespace=team", "-purge", "-immediate", "web")
}
