package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
)

// Load reads configuration files and folders in order and merges them. Errors name the file, the line and what was
// expected.
func Load(paths []string) (*Config, error) {
	merged := &Config{}
	for _, path := range paths {
		files, err := configFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read configuration: %w", err)
			}
			c, err := Parse(file, body)
			if err != nil {
				return nil, err
			}
			merged = Merge(merged, c)
		}
	}
	return merged, nil
}

// configFiles lists the files which path names: itself, or a folder's *.hcl and *.json in the order of their names.
func configFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") {
			continue
		}
		if ext := filepath.Ext(name); ext == ".hcl" || ext == ".json" {
			files = append(files, filepath.Join(path, name))
		}
	}
	sort.Strings(files)
	return files, nil
}

// Parse reads one configuration file, JSON when it begins with a brace, else HCL.
func Parse(filename string, body []byte) (*Config, error) {
	trimmed := bytes.TrimSpace(body)
	var file *hcl.File
	var diags hcl.Diagnostics
	if len(trimmed) > 0 && trimmed[0] == '{' {
		file, diags = json.Parse(body, filename)
	} else {
		file, diags = hclsyntax.ParseConfig(body, filename, hcl.InitialPos)
	}
	if diags.HasErrors() {
		return nil, configError(diags)
	}
	c := &Config{}
	if diags := decodeConfig(file.Body, c); diags.HasErrors() {
		return nil, configError(diags)
	}
	return c, nil
}

// configError puts each fault on one line.
func configError(diags hcl.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		where := ""
		if d.Subject != nil {
			where = fmt.Sprintf("%s:%d:%d: ", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column)
		}
		lines = append(lines, where+d.Summary+": "+strings.ReplaceAll(d.Detail, "\n", " "))
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
