package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set appends.
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

// jobspecFlags are the flags of the commands that read a jobspec.
type jobspecFlags struct {
	vars     list
	varFiles list
	strict   bool
	json     bool
	vaultNS  string
}

func (f *jobspecFlags) declare(fs *flag.FlagSet) {
	fs.Var(&f.vars, "var", "`NAME=VALUE` of an input variable; may be repeated.")
	fs.Var(&f.varFiles, "var-file", "`PATH` of a file with values of variables; may be repeated.")
	fs.BoolVar(&f.strict, "hcl2-strict", true, "A value for an undeclared variable is an error.")
	fs.BoolVar(&f.json, "json", false, "The file is a job in the API's JSON form.")
	fs.StringVar(&f.vaultNS, "vault-namespace", "", "Vault `NAMESPACE` of the job.")
}

// parse reads the jobspec at path ("-": standard input) and tells its warnings.
func (f *jobspecFlags) parse(ctx context.Context, c *call, path string) (*structs.Job, *structs.JobSubmission, error) {
	body, err := readJobspec(ctx, c, path)
	if err != nil {
		return nil, nil, err
	}
	name := path
	if path == "-" {
		name = "stdin"
	}
	if f.json && !jobspec.IsJSON(body) {
		return nil, nil, fmt.Errorf("%s: -json was given, but the file is no JSON object", name)
	}
	if jobspec.IsJSON(body) && len(f.vars)+len(f.varFiles) > 0 {
		return nil, nil, fmt.Errorf("%s: -var and -var-file are for jobspecs in HCL: a job in JSON has no variables", name)
	}
	result, err := jobspec.Parse(jobspec.Config{Path: name, Body: body, AllowFS: true, Strict: f.strict,
		Vars: f.vars, VarFiles: f.varFiles, Env: c.environ})
	if err != nil {
		return nil, nil, err
	}
	if text := jobspec.FormatDiagnostics(result.Warnings, result.Files, hcl.DiagWarning); text != "" {
		c.warnf("Warnings:\n%s\n", text)
	}
	if f.vaultNS != "" {
		result.Job.VaultNamespace = &f.vaultNS
	}
	submission := &structs.JobSubmission{Source: string(body), Format: "hcl2", VariableFlags: map[string]string{}}
	if jobspec.IsJSON(body) {
		submission.Format = "json"
	}
	// Without the environment the source would become another job.
	maps.Copy(submission.VariableFlags, result.Environment)
	for _, v := range f.vars {
		key, value, _ := strings.Cut(v, "=")
		submission.VariableFlags[key] = value
	}
	if submission.Variables = result.FileVariables; submission.Variables != "" && !strings.HasSuffix(submission.Variables, "\n") {
		submission.Variables += "\n"
	}
	return result.Job, submission, nil
}

// parseViewJSON is what job run -output prints.
func parseViewJSON(job *structs.Job) (string, error) {
	raw, err := structs.ParseView(job)
	if err != nil {
		return "", err
	}
	var v json.RawMessage = raw
	text, err := json.MarshalIndent(v, "", "    ")
	return string(text), err
}
