package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// parser reads jobspecs for the API. One text may cost some hundred MiB for a moment, when it is hostile, so that no more
// are read at a time than there are processors; others wait.
type parser struct {
	backend *Backend
	slots   chan struct{}
}

func newParser(b *Backend) *parser {
	return &parser{backend: b, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// parseJob turns a jobspec's text into a job and stores nothing.
func (p *parser) parseJob(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.JobsParseRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	if req.JobHCL == "" {
		return structs.Errorf(structs.CodeInvalid, "Job spec is empty")
	}
	job, err := p.parse(r.Context(), &req)
	if err != nil {
		return err
	}
	if req.Canonicalize {
		job.SetDefaults()
		return answer(w, q, job)
	}
	text, err := structs.ParseView(job)
	if err != nil {
		return err
	}
	var view struct{ Job json.RawMessage }
	if err := json.Unmarshal(text, &view); err != nil {
		return err
	}
	return answerRaw(w, q, view.Job)
}

func (p *parser) parse(ctx context.Context, req *structs.JobsParseRequest) (*structs.Job, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.slots }()
	if p.backend.Parse != nil {
		return p.backend.Parse(req)
	}
	return ParseJobspec(req)
}

// ParseJobspec is Backend.Parse for a server: the text may name no files, and no environment sets its variables.
func ParseJobspec(req *structs.JobsParseRequest) (*structs.Job, error) {
	result, err := jobspec.Parse(jobspec.Config{Body: []byte(req.JobHCL), VarContent: req.Variables})
	if err != nil {
		return nil, structs.Errorf(structs.CodeInvalid, "%w", err)
	}
	return result.Job, nil
}
