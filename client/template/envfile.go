package template

import (
	"bytes"

	"github.com/hashicorp/go-envparse"
)

// variables reads what a template with env gives: lines of NAME=value. An error names its line.
func variables(data []byte) (map[string]string, error) {
	return envparse.Parse(bytes.NewReader(data))
}
