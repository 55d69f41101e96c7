package endpoint

import (
	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// ParseJobspec is Backend.Parse for a server: the text may name no files, and no environment sets its variables.
func ParseJobspec(req *structs.JobsParseRequest) (*structs.Job, error) {
	result, err := jobspec.Parse(jobspec.Config{Body: []byte(req.JobHCL), VarContent: req.Variables})
	if err != nil {
		return nil, structs.Errorf(structs.CodeInvalid, "%w", err)
	}
	return result.Job, nil
}
