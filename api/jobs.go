package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Jobs are the calls about jobs.
type Jobs struct{ client *Client }

// Jobs gives the calls about jobs.
func (c *Client) Jobs() *Jobs { return &Jobs{client: c} }

func jobPath(id, suffix string) string { return "/v1/job/" + url.PathEscape(id) + suffix }

// RegisterOptions are what a registration carries beside the job.
type RegisterOptions struct {
	// EnforceIndex refuses the write unless the stored job's JobModifyIndex is ModifyIndex (0: there is none yet).
	EnforceIndex      bool
	ModifyIndex       uint64
	PolicyOverride    bool
	PreserveCounts    bool
	PreserveResources bool
	EvalPriority      int // 0: the job's own
	Submission        *structs.JobSubmission
}

// DeregisterOptions say how a job is stopped.
type DeregisterOptions struct {
	Purge           bool
	Global          bool // in all regions of a multiregion job
	EvalPriority    int  // 0: the job's own
	NoShutdownDelay bool
	KillTimeout     *time.Duration // shortens the wait before SIGKILL for this stop alone
}

// List gives the stubs of jobs.
func (j *Jobs) List(ctx context.Context, q *QueryOptions) ([]*structs.JobListStub, *QueryMeta, error) {
	var out []*structs.JobListStub
	meta, err := j.client.get(ctx, "/v1/jobs", q, &out)
	return out, meta, err
}

// Info gives one job. Whole numbers in its free-form values are exact, so that it may be registered again as it is.
func (j *Jobs) Info(ctx context.Context, id string, q *QueryOptions) (*structs.Job, *QueryMeta, error) {
	var text json.RawMessage
	meta, err := j.client.get(ctx, jobPath(id, ""), q, &text)
	if err != nil {
		return nil, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out structs.Job
	if err := decoder.Decode(&out); err != nil {
		return nil, nil, fmt.Errorf("decode job: %w", err)
	}
	out.ExactNumbers()
	return &out, meta, nil
}

// Parse turns a jobspec's text into a job, on the agent.
func (j *Jobs) Parse(ctx context.Context, req *structs.JobsParseRequest) (*structs.Job, error) {
	var out structs.Job
	if _, err := j.client.write(ctx, http.MethodPut, "/v1/jobs/parse", nil, req, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Validate tells a job's faults and warnings without storing it.
func (j *Jobs) Validate(ctx context.Context, job *structs.Job, w *WriteOptions) (
	*structs.JobValidateResponse, *WriteMeta, error,
) {
	var out structs.JobValidateResponse
	meta, err := j.client.write(ctx, http.MethodPut, "/v1/validate/job", w, structs.JobValidateRequest{Job: job}, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Register stores a job and makes an evaluation for it. A nil opts means none.
func (j *Jobs) Register(ctx context.Context, job *structs.Job, opts *RegisterOptions, w *WriteOptions) (
	*structs.JobRegisterResponse, *WriteMeta, error,
) {
	req := structs.JobRegisterRequest{Job: job}
	if opts != nil {
		req.Submission = opts.Submission
		req.EnforceIndex = opts.EnforceIndex
		req.JobModifyIndex = opts.ModifyIndex
		req.PolicyOverride = opts.PolicyOverride
		req.PreserveCounts = opts.PreserveCounts
		req.PreserveResources = opts.PreserveResources
		req.EvalPriority = opts.EvalPriority
	}
	var out structs.JobRegisterResponse
	meta, err := j.client.write(ctx, http.MethodPut, "/v1/jobs", w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Deregister stops a job. A nil opts means none.
func (j *Jobs) Deregister(ctx context.Context, id string, opts *DeregisterOptions, w *WriteOptions) (
	*structs.JobDeregisterResponse, *WriteMeta, error,
) {
	params := map[string]string{}
	if opts != nil {
		setTrue(params, "purge", opts.Purge)
		setTrue(params, "global", opts.Global)
		setTrue(params, "no_shutdown_delay", opts.NoShutdownDelay)
		if opts.EvalPriority != 0 {
			params["eval_priority"] = strconv.Itoa(opts.EvalPriority)
		}
		if opts.KillTimeout != nil {
			params["kill_timeout"] = opts.KillTimeout.String()
		}
	}
	var out structs.JobDeregisterResponse
	meta, err := j.client.write(ctx, http.MethodDelete, jobPath(id, ""), w.with(params), nil, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

func setTrue(params map[string]string, key string, when bool) {
	if when {
		params[key] = "true"
	}
}

// Evaluate makes a new evaluation for a job.
func (j *Jobs) Evaluate(ctx context.Context, id string, opts structs.EvalOptions, w *WriteOptions) (
	*structs.JobRegisterResponse, *WriteMeta, error,
) {
	var out structs.JobRegisterResponse
	req := structs.JobEvaluateRequest{JobID: id, EvalOptions: opts}
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(id, "/evaluate"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Allocations gives the stubs of a job's allocations; all includes those of an earlier job with the same id.
func (j *Jobs) Allocations(ctx context.Context, id string, all bool, q *QueryOptions) (
	[]*structs.AllocationListStub, *QueryMeta, error,
) {
	var out []*structs.AllocationListStub
	meta, err := j.client.get(ctx, jobPath(id, "/allocations"), q.with("all", strconv.FormatBool(all)), &out)
	return out, meta, err
}

// Evaluations gives a job's evaluations.
func (j *Jobs) Evaluations(ctx context.Context, id string, q *QueryOptions) ([]*structs.Evaluation, *QueryMeta, error) {
	var out []*structs.Evaluation
	meta, err := j.client.get(ctx, jobPath(id, "/evaluations"), q, &out)
	return out, meta, err
}

// Actions lists the actions of a job's tasks. Exec runs one.
func (j *Jobs) Actions(ctx context.Context, id string, q *QueryOptions) ([]*structs.JobAction, *QueryMeta, error) {
	var out []*structs.JobAction
	meta, err := j.client.get(ctx, jobPath(id, "/actions"), q, &out)
	return out, meta, err
}

// Explain says why a job is as it is, and what would let the rest of it be placed.
func (j *Jobs) Explain(ctx context.Context, id string, q *QueryOptions) (*structs.JobExplanation, *QueryMeta, error) {
	var out structs.JobExplanation
	meta, err := j.client.get(ctx, jobPath(id, "/explain"), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Summary gives a job's counts by group.
func (j *Jobs) Summary(ctx context.Context, id string, q *QueryOptions) (*structs.JobSummary, *QueryMeta, error) {
	var out structs.JobSummary
	meta, err := j.client.get(ctx, jobPath(id, "/summary"), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Versions gives a job's kept versions, newest first.
func (j *Jobs) Versions(ctx context.Context, id string, q *QueryOptions) (
	*structs.JobVersionsResponse, *QueryMeta, error,
) {
	var out structs.JobVersionsResponse
	meta, err := j.client.get(ctx, jobPath(id, "/versions"), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Submission gives the source from which a version of a job was made.
func (j *Jobs) Submission(ctx context.Context, id string, version uint64, q *QueryOptions) (
	*structs.JobSubmission, *QueryMeta, error,
) {
	var out structs.JobSubmission
	meta, err := j.client.get(ctx, jobPath(id, "/submission"), q.with("version", strconv.FormatUint(version, 10)), &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Deployments gives a job's deployments; all includes those of an earlier job with the same id.
func (j *Jobs) Deployments(ctx context.Context, id string, all bool, q *QueryOptions) (
	[]*structs.Deployment, *QueryMeta, error,
) {
	var out []*structs.Deployment
	meta, err := j.client.get(ctx, jobPath(id, "/deployments"), q.with("all", strconv.FormatBool(all)), &out)
	return out, meta, err
}

// LatestDeployment gives a job's newest deployment, nil when it has none.
func (j *Jobs) LatestDeployment(ctx context.Context, id string, q *QueryOptions) (
	*structs.Deployment, *QueryMeta, error,
) {
	var out *structs.Deployment
	meta, err := j.client.get(ctx, jobPath(id, "/deployment"), q, &out)
	return out, meta, err
}

// SetStable marks a version of a job stable or not.
func (j *Jobs) SetStable(ctx context.Context, id string, version uint64, stable bool, w *WriteOptions) (
	*structs.JobStabilityResponse, *WriteMeta, error,
) {
	var out structs.JobStabilityResponse
	req := structs.JobStabilityRequest{JobID: id, JobVersion: version, Stable: stable}
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(id, "/stable"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// ScaleStatus gives the counts of a job's groups.
func (j *Jobs) ScaleStatus(ctx context.Context, id string, q *QueryOptions) (
	*structs.JobScaleStatusResponse, *QueryMeta, error,
) {
	var out structs.JobScaleStatusResponse
	meta, err := j.client.get(ctx, jobPath(id, "/scale"), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// ScaleOptions are the options of the stops which a smaller count causes.
type ScaleOptions struct {
	NoShutdownDelay bool
	KillTimeout     *time.Duration // shortens the wait before SIGKILL for these stops alone
}

// Scale gives a group of a job another count, or reports something about its scaling. A nil opts means none.
func (j *Jobs) Scale(ctx context.Context, id string, req structs.ScalingRequest, opts *ScaleOptions, w *WriteOptions) (
	*structs.JobRegisterResponse, *WriteMeta, error,
) {
	params := map[string]string{}
	if opts != nil {
		setTrue(params, "no_shutdown_delay", opts.NoShutdownDelay)
		if opts.KillTimeout != nil {
			params["kill_timeout"] = opts.KillTimeout.String()
		}
	}
	var out structs.JobRegisterResponse
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(id, "/scale"), w.with(params), req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// TagVersion names a version of a job, which is then kept.
func (j *Jobs) TagVersion(ctx context.Context, id, name string, req structs.TagVersionRequest, w *WriteOptions) (
	*WriteMeta, error,
) {
	return j.client.write(ctx, http.MethodPut, jobPath(id, "/versions/"+url.PathEscape(name)+"/tag"), w, req, nil)
}

// UntagVersion takes a name away from the version that has it.
func (j *Jobs) UntagVersion(ctx context.Context, id, name string, w *WriteOptions) (*WriteMeta, error) {
	return j.client.write(ctx, http.MethodDelete, jobPath(id, "/versions/"+url.PathEscape(name)+"/tag"), w, nil, nil)
}
