package jobspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/nomadlite/nomadlite/structs"
)

// IsJSON says whether body is a JSON object rather than HCL.
func IsJSON(body []byte) bool {
	trimmed := bytes.TrimLeft(withoutMark(body), " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// withoutMark cuts the byte order mark which some editors put before text: JSON knows none, and positions do not count it.
func withoutMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) }

// parseJSON reads a job in the API's form, bare or as {"Job": {...}}.
func parseJSON(cfg Config) (*Result, error) {
	var wrapped struct{ Job json.RawMessage }
	file := &hcl.File{Bytes: cfg.Body}
	files := map[string]*hcl.File{cfg.Path: file}
	begin := 0 // where the job begins in the text
	fail := func(err error) error {
		return &Error{Files: files, Diags: hcl.Diagnostics{jsonFault(cfg, err, begin)}}
	}
	if err := json.Unmarshal(cfg.Body, &wrapped); err != nil {
		return nil, fail(err)
	}
	body := cfg.Body
	if len(wrapped.Job) > 0 && !bytes.Equal(wrapped.Job, []byte("null")) {
		body = wrapped.Job
		begin = max(bytes.Index(cfg.Body, body), 0)
	}
	job := &structs.Job{}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(job); err != nil {
		return nil, fail(err)
	}
	if job.ID == nil && job.Name == nil && len(job.TaskGroups) == 0 {
		text := `the object is no job: it needs at least "ID" and "TaskGroups"`
		if bytes.Contains(cfg.Body, []byte(`"job"`)) {
			text += `; HCL written as JSON ({"job": {"NAME": ...}}) is not read, only the form of the API is`
		}
		return nil, fail(errors.New(text))
	}
	job.ExactNumbers()
	return &Result{Job: job, Files: files, Warnings: unknownNames(cfg, body, begin)}, nil
}

// jsonFault gives a JSON error its position.
func jsonFault(cfg Config, err error, begin int) *hcl.Diagnostic {
	offset := int64(-1)
	text := err.Error()
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = int64(begin) + syntax.Offset
	case errors.As(err, &mismatch):
		offset = int64(begin) + mismatch.Offset
		text = fmt.Sprintf("%s needs %s, not a JSON %s", mismatch.Field, mismatch.Type, mismatch.Value)
		if mismatch.Type == durationType {
			text += " (durations are numbers of nanoseconds)"
		}
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid JSON job", Detail: text + "."}
	if offset >= 0 && int(offset) <= len(cfg.Body) {
		pos := position(cfg.Body, int(offset))
		d.Subject = &hcl.Range{Filename: cfg.Path, Start: pos, End: pos}
	}
	return d
}

// position is that of a byte in text.
func position(text []byte, offset int) hcl.Pos {
	before := text[:min(offset, len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	return hcl.Pos{Line: line, Column: len(before) - bytes.LastIndexByte(before, '\n'), Byte: len(before)}
}
