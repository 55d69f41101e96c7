package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/nomadlite/nomadlite/structs"
)

// PlanOptions say what a plan answers.
type PlanOptions struct {
	Diff           bool
	PolicyOverride bool
}

// DiffOptions say with what the versions of a job are compared: each with the one before it, or all with the one that
// Tag or Version names.
type DiffOptions struct {
	Tag     string
	Version *uint64
}

// Plan tells what registering a job would do. A nil opts means none.
func (j *Jobs) Plan(ctx context.Context, job *structs.Job, opts *PlanOptions, w *WriteOptions) (
	*structs.JobPlanResponse, *WriteMeta, error,
) {
	req := structs.JobPlanRequest{Job: job}
	if opts != nil {
		req.Diff, req.PolicyOverride = opts.Diff, opts.PolicyOverride
	}
	var out structs.JobPlanResponse
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(structs.Val(job.ID), "/plan"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Revert registers an older version of a job anew. With enforcePrior it is refused unless that is the current version.
func (j *Jobs) Revert(ctx context.Context, id string, version uint64, enforcePrior *uint64, w *WriteOptions) (
	*structs.JobRegisterResponse, *WriteMeta, error,
) {
	var out structs.JobRegisterResponse
	req := structs.JobRevertRequest{JobID: id, JobVersion: version, EnforcePriorVersion: enforcePrior}
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(id, "/revert"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// VersionsDiff gives a job's kept versions, newest first, and how they differ: one difference less than versions when
// each is compared with the one before it, else one for each.
func (j *Jobs) VersionsDiff(ctx context.Context, id string, opts DiffOptions, q *QueryOptions) (
	*structs.JobVersionsResponse, *QueryMeta, error,
) {
	q = q.with("diffs", "true")
	if opts.Tag != "" {
		q = q.with("diff_tag", opts.Tag)
	}
	if opts.Version != nil {
		q = q.with("diff_version", strconv.FormatUint(*opts.Version, 10))
	}
	var out structs.JobVersionsResponse
	meta, err := j.client.get(ctx, jobPath(id, "/versions"), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}
