package jobspec_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/jobspec"
)

// examples parses all examples of a folder and gives their texts and what validation says, by path.
func examples(t *testing.T, pattern string) (texts map[string]string, faults map[string]error) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "examples", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples %s: %v", pattern, err)
	}
	texts, faults = map[string]string{}, map[string]error{}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		result, err := jobspec.Parse(jobspec.Config{Path: path, Body: body, Vars: []string{"hello=/bin/hello"}})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		result.Job.Canonicalize()
		texts[path], faults[path] = string(body), result.Job.Validate()
	}
	return texts, faults
}

func TestExamplesAreValid(t *testing.T) {
	for _, pattern := range []string{"*.nomad.hcl", "jobspec/*.nomad.hcl"} {
		_, faults := examples(t, pattern)
		for path, err := range faults {
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestExamplesOfWhatIsRefusedAreRefused(t *testing.T) {
	_, faults := examples(t, "jobspec/refused/*.nomad.hcl")
	words := regexp.MustCompile(`not part of|not enabled|cannot be run yet|no tokens yet`)
	for path, err := range faults {
		if err == nil || !words.MatchString(err.Error()) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// TestEachBlockHasAnExample and is described, with each of its attributes, in the page about the language.
func TestEachBlockHasAnExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "jobspec.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, pattern := range []string{"jobspec/*.nomad.hcl", "jobspec/refused/*.nomad.hcl"} {
		texts, _ := examples(t, pattern)
		for path, text := range texts {
			all += text
			if name := strings.TrimPrefix(filepath.ToSlash(path), "../"); !strings.Contains(string(page), "(../"+name+")") {
				t.Errorf("docs/jobspec.md has no link to %s", name)
			}
		}
	}
	sections := objectSections(string(page))
	for object, rows := range fieldRows(t) {
		section, ok := sections[object]
		if !ok {
			t.Errorf("docs/jobspec.md has no section for %s", object)
			continue
		}
		for _, row := range rows {
			if row.kind == "label" || row.name == "reserved_ports" {
				continue
			}
			if row.kind == "block" && !regexp.MustCompile(`(?m)^ *(dynamic ")?`+row.name+`("? \{| "[^"]+" \{)`).MatchString(all) {
				t.Errorf("no example has a block %s", row.name)
			}
			if !strings.Contains(section, "`"+row.name+"`") {
				t.Errorf("docs/jobspec.md: section of %s: nothing about %s", object, row.name)
			}
		}
	}
}

// objectSections are the parts of the page, by the object of the API which each names in its first line.
func objectSections(page string) map[string]string {
	out := map[string]string{}
	named := regexp.MustCompile(`\*\(([A-Za-z, ]+)\)\*`)
	for _, section := range strings.Split(page, "\n### ")[1:] {
		section, _, _ = strings.Cut(section, "\n## ")
		if m := named.FindStringSubmatch(section); m != nil {
			for _, object := range strings.Split(m[1], ", ") {
				out[object] = section
			}
		}
	}
	return out
}
