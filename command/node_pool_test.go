package command

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func TestParsePool(t *testing.T) {
	got, err := parsePool([]byte(`
node_pool "prod" {
  description       = "For work"
  node_identity_ttl = "720h"
  meta {
    env   = "prod"
    count = 3
  }
  scheduler_config {
    scheduler_algorithm             = "spread"
    memory_oversubscription_enabled = false
  }
}`), "x.hcl")
	want := &structs.NodePool{Name: "prod", Description: "For work", NodeIdentityTTL: 720 * time.Hour,
		Meta: map[string]string{"env": "prod", "count": "3"},
		SchedulerConfiguration: &structs.NodePoolSchedulerConfiguration{SchedulerAlgorithm: "spread",
			MemoryOversubscriptionEnabled: structs.Ptr(false)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	text := poolText(got)
	for _, part := range []string{"Node Identity TTL = 720h0m0s", "count = 3\nenv   = prod\n", "Scheduler Algorithm             = spread",
		"Memory Oversubscription Enabled = false"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for text, want := range map[string]string{
		`node_pool "a" {`:                        "x.hcl:1",
		`node_pool "a" { nope = 1 }`:             "nope",
		`node_pool {}`:                           "name",
		``:                                       "it has 0",
		"node_pool \"a\" {}\nnode_pool \"b\" {}": "it has 2",
		"node_pool \"a\" {\nnode_identity_ttl = \"soon\"\n}": `got "soon"`,
		"node_pool \"a\" {\nmeta {\nx = [1]\n}\n}":           "x.hcl:3",
	} {
		if got, err := parsePool([]byte(text), "x.hcl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestNodePoolInitWritesWhatApplyReads(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"hcl", "json"} {
		path := filepath.Join(dir, "x."+format)
		s, out, errs := testStreams()
		if code := run("nomadlite", []string{"node", "pool", "init", "-out=" + format, path}, s); code != 0 || !strings.Contains(out.String(), path) {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := readPool(text, path, format == "json")
		if err != nil || pool.Name != "example" || pool.Meta["owner"] != "sre" {
			t.Errorf("%s: %+v, %v", format, pool, err)
		}
		s, _, _ = testStreams()
		if code := run("nomadlite", []string{"node", "pool", "init", "-out=" + format, path}, s); code != 1 {
			t.Errorf("wrote over a file: exit %d", code)
		}
	}
	s, _, errs := testStreams()
	if code := run("nomadlite", []string{"node", "pool", "init", "-out=xml", filepath.Join(dir, "y")}, s); code != 1 || !strings.Contains(errs.String(), "xml") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := readPool([]byte(`{"Name": 3}`), "x", true); err == nil {
		t.Error("a name that is a number was taken")
	}
}
