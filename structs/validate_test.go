package structs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file, or rewrites the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		w, g := "", ""
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if w != g {
			t.Fatalf("%s:%d:\nwant %q\ngot  %q\n(-update rewrites the file)", path, i+1, w, g)
		}
	}
}

// needsServer says whether the fault of a case is not in the job alone: the request cannot be read, or it names
// what only the state of a server can tell.
func needsServer(name, class string) bool {
	return strings.HasPrefix(name, "request-") || strings.HasPrefix(class, "unknown-") && class != "unknown-reference"
}

func TestInvalidJobsAreRefused(t *testing.T) {
	cases, err := filepath.Glob("testdata/server/invalid/*.err")
	if err != nil || len(cases) < 140 {
		t.Fatalf("found %d cases, %v", len(cases), err)
	}
	var told strings.Builder
	for _, path := range cases {
		name := strings.TrimSuffix(filepath.Base(path), ".err")
		line, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		class := strings.Fields(string(line))[1]
		if needsServer(name, class) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			job := readJobCase(t, strings.TrimSuffix(path, ".err")+".json")
			job.Canonicalize()
			err := job.Validate()
			var faults Errors
			if !errors.As(err, &faults) {
				t.Fatalf("not refused: %v", err)
			}
			if ErrorCode(err) != CodeValidation {
				t.Errorf("the code is %v", ErrorCode(err))
			}
			if class == "several" && len(faults) < 3 {
				t.Errorf("only %d faults told", len(faults))
			}
			fmt.Fprintf(&told, "%s (%s)\n", name, class)
			for _, f := range faults {
				fmt.Fprintf(&told, "\t%s\n", f)
			}
		})
	}
	golden(t, "testdata/server/invalid.golden", told.String())
}

// TestServerCasesAreValidWhenLookedAtAlone makes sure that a fault which only a server can find is the only one.
func TestServerCasesAreValidWhenLookedAtAlone(t *testing.T) {
	for _, name := range []string{
		"job-unknown-namespace", "job-unknown-node-pool", "job-unknown-region", "request-enforce-index",
		"request-bad-eval-priority", "request-other-job-in-path",
	} {
		job := readJobCase(t, filepath.Join("testdata/server/invalid", name+".json"))
		job.Canonicalize()
		if err := job.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingInABodyPanics feeds bodies that are readable and make no sense.
func TestNothingInABodyPanics(t *testing.T) {
	for _, body := range []string{
		`{}`,
		`{"TaskGroups":[null]}`,
		`{"TaskGroups":[{"Tasks":[null]}]}`,
		`{"TaskGroups":[{"Tasks":[{}],"Networks":[null],"Services":[null],"Volumes":{"v":null},"Constraints":[null],"Affinities":[null],"Spreads":[null,{"SpreadTarget":[null]}],"Scaling":{},"Disconnect":{},"Update":{},"Migrate":{}}]}`,
		`{"TaskGroups":[{"Tasks":[{"Artifacts":[null,{}],"Templates":[null,{"ChangeScript":{},"Wait":{}}],"Services":[null,{"Checks":[{"CheckRestart":{}}],"Connect":{}}],"VolumeMounts":[null,{}],"Secrets":[null,{}],"Actions":[null,{}],"ScalingPolicies":[null,{}],"Identities":[null,{}],"Vault":{"ChangeMode":"signal"},"Consul":{},"CSIPluginConfig":{},"Lifecycle":{},"Schedule":{},"DispatchPayload":{},"LogConfig":{},"Resources":{"Devices":[null,{}],"Networks":[null],"NUMA":{}}}]}]}`,
		`{"Periodic":{},"ParameterizedJob":{},"Multiregion":{"Regions":[null]},"UI":{"Links":[null]},"Update":{},"Type":"x"}`,
		`{"TaskGroups":[{"Networks":[{}],"Services":[{"Connect":{"SidecarService":{"Proxy":{"Upstreams":[null]}},"SidecarTask":{"Resources":{},"LogConfig":{}}}}],"Tasks":[{}]}]}`,
		`{"Type":"batch","Periodic":{"Specs":["","* * * * * * * *","*/0 * * * *","5-1 * * * *"]}}`,
	} {
		var job Job
		if err := json.Unmarshal([]byte(body), &job); err != nil {
			t.Fatal(err)
		}
		job.Canonicalize()
		if err := job.Validate(); err == nil {
			t.Errorf("%s is valid", body)
		}
		job.Warnings()
		if _, err := ParseView(&job); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		job.Copy()
		job.Stub(nil)
	}
}
