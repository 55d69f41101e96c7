package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func jobWriteRoutes(b *Backend) []route.Route {
	return []route.Route{
		b.limited(write("/v1/jobs", b.handler(b.registerJob))),
		b.limited(write("/v1/job/{job_id}", b.handler(b.registerJob))),
		b.limited(write("/v1/jobs/parse", b.handler(newParser(b).parseJob))),
		b.limited(write("/v1/validate/job", b.handler(b.validateJob))),
		remove("/v1/job/{job_id}", b.handler(b.deregisterJob)),
		write("/v1/job/{job_id}/evaluate", b.handler(b.evaluateJob)),
		write("/v1/job/{job_id}/stable", b.handler(b.setJobStable)),
		write("/v1/job/{job_id}/versions/{name}/tag", b.handler(b.tagJobVersion)),
		remove("/v1/job/{job_id}/versions/{name}/tag", b.handler(b.untagJobVersion)),
	}
}

// registerJob stores a job with its evaluation, in one raft entry.
func (b *Backend) registerJob(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.JobRegisterRequest
	if err := decodeJob(r, &req, func() *structs.Job { return req.Job }); err != nil {
		return err
	}
	if id := r.Param("job_id"); id != "" && structs.Val(req.Job.ID) != id {
		return structs.Errorf(structs.CodeInvalid, "job ID %q does not match the path's %q", structs.Val(req.Job.ID), id)
	}
	if err := checkEvalPriority("EvalPriority", req.EvalPriority); err != nil {
		return err
	}
	if err := b.prepareJob(req.Job, q); err != nil {
		return err
	}
	job := req.Job
	if err := b.admit(job); err != nil {
		return err
	}
	if cfg := b.Store.SchedulerConfig(nil); cfg.RejectJobRegistration {
		return structs.Errorf(structs.CodePermission, "job registration is rejected by the scheduler configuration")
	}
	warnings := append(job.Warnings(), job.Unsupported()...)
	if size := sourceSize(req.Submission); size > b.maxSourceSize() {
		warnings = append(warnings, fmt.Sprintf("job source size of %d bytes exceeds the maximum of %d bytes: it was not kept",
			size, b.maxSourceSize()))
		req.Submission = nil
	}
	return b.storeJob(w, r, q, &fsm.JobRegister{
		Job:               job,
		Submission:        req.Submission,
		EnforceIndex:      req.EnforceIndex,
		JobModifyIndex:    req.JobModifyIndex,
		PreserveCounts:    req.PreserveCounts,
		PreserveResources: req.PreserveResources,
		Now:               b.unixNano(),
	}, req.EvalPriority, warnings...)
}

// storeJob commits a job with its evaluation and answers. A priority of 0 is the job's.
func (b *Backend) storeJob(w http.ResponseWriter, r *route.Request, q *query, cmd *fsm.JobRegister, priority int,
	warnings ...string,
) error {
	if cmd.Job.HasOwnAllocations() {
		cmd.Eval = jobEval(cmd.Job, structs.EvalTriggerJobRegister, cmd.Now)
		cmd.Eval.JobModifyIndex = 0 // that of this very entry
		if priority > 0 {
			cmd.Eval.Priority = priority
		}
	}
	cmd.SameKind = true
	resp, index, err := b.apply(r.Context(), fsm.KindJobRegister, cmd)
	if err != nil {
		return err
	}
	out := structs.JobRegisterResponse{JobModifyIndex: index, Warnings: warningText(warnings)}
	if stored, ok := resp.(fsm.JobRegisterResult); ok {
		out.JobModifyIndex = stored.JobModifyIndex
	}
	if cmd.Eval != nil {
		out.EvalID, out.EvalCreateIndex = cmd.Eval.ID, index
	}
	return answerWrite(w, q, index, out)
}

// decodeJob reads a request that must hold a job. Whole numbers in free-form values stay exact.
func decodeJob(r *route.Request, req any, job func() *structs.Job) error {
	if err := decodeExact(r, req); err != nil {
		return err
	}
	if job() == nil {
		return structs.Errorf(structs.CodeInvalid, "Job must be specified")
	}
	job().ExactNumbers()
	return nil
}

// prepareJob settles the job's region and namespace and brings it into the form in which it is kept.
func (b *Backend) prepareJob(job *structs.Job, q *query) error {
	region := structs.Val(job.Region)
	if given := q.values.Get("region"); given != "" {
		region = given
	}
	// "global" is what a jobspec without a region is given: it stands for the region that was asked.
	if region == "" || region == structs.DefaultRegion {
		region = b.Region
	}
	if err := b.checkRegion(region); err != nil {
		return err
	}
	job.Region = &region
	if given := q.values.Get("namespace"); given != "" {
		job.Namespace = &given
	}
	job.Canonicalize()
	return nil
}

// admit tells why the servers cannot keep a job, all reasons at once.
func (b *Backend) admit(job *structs.Job) error {
	faults := b.jobFaults(job)
	if ns := structs.Val(job.Namespace); b.Store.Namespace(nil, ns) == nil {
		faults.Addf("job %q is in nonexistent namespace %q", structs.Val(job.ID), ns)
	}
	if pool := structs.Val(job.NodePool); b.Store.NodePool(nil, pool) == nil {
		faults.Addf("job %q is in nonexistent node pool %q", structs.Val(job.ID), pool)
	}
	if err := faults.Err(); err != nil {
		return &structs.CodedError{Code: structs.CodeValidation, Text: err.Error(), Err: err}
	}
	return nil
}

// jobFaults lists what is wrong with a job by itself, and what this server's limits refuse.
func (b *Backend) jobFaults(job *structs.Job) structs.Errors {
	var faults structs.Errors
	if err := job.Validate(); err != nil {
		if several := structs.Errors(nil); errors.As(err, &several) {
			faults = append(faults, several...)
		} else {
			faults.Add(err)
		}
	}
	if limit := b.Limits.JobMaxPriority; limit > 0 && structs.Val(job.Priority) > limit {
		faults.Addf("job priority must be at most %d, not %d", limit, structs.Val(job.Priority))
	}
	b.tooMany(job, &faults)
	return faults
}

// tooMany adds a fault when a job asks for more allocations than it may have.
func (b *Backend) tooMany(job *structs.Job, faults *structs.Errors) {
	if !job.HasOwnAllocations() {
		return
	}
	limit, count := b.maxCount(), 0
	for _, group := range job.TaskGroups {
		// Together they may be more than a number holds.
		count = min(count+min(max(structs.Val(group.Count), 0), limit+1), limit+1)
		if u := group.Update; u != nil && structs.Val(u.Canary) > limit {
			faults.Addf("group %q asks for %d canaries: at most %d are allowed", structs.Val(group.Name), *u.Canary, limit)
		}
	}
	if count > limit {
		faults.Addf("job asks for more than %d allocations, which are all that are allowed", limit)
	}
}

func (b *Backend) maxCount() int {
	if b.Limits.JobMaxCount > 0 {
		return b.Limits.JobMaxCount
	}
	return 50000
}

func sourceSize(s *structs.JobSubmission) int {
	if s == nil {
		return 0
	}
	size := len(s.Source) + len(s.Variables)
	for name, value := range s.VariableFlags {
		size += len(name) + len(value)
	}
	return size
}

func (b *Backend) maxSourceSize() int {
	if b.Limits.JobMaxSourceSize > 0 {
		return b.Limits.JobMaxSourceSize
	}
	return 1000000
}

// jobEval is the evaluation that acts on a job's present state.
func jobEval(job *structs.Job, trigger string, now int64) *structs.Evaluation {
	return &structs.Evaluation{
		ID:             uuid.New(),
		Namespace:      structs.Val(job.Namespace),
		Priority:       structs.Val(job.Priority),
		Type:           structs.Val(job.Type),
		TriggeredBy:    trigger,
		JobID:          structs.Val(job.ID),
		JobModifyIndex: job.JobModifyIndex,
		Status:         structs.EvalStatusPending,
		CreateTime:     now,
		ModifyTime:     now,
	}
}

func checkEvalPriority(name string, priority int) error {
	if priority < 0 || priority > structs.JobMaxPriority {
		return structs.Errorf(structs.CodeInvalid, "%s must be between %d and %d, not %d",
			name, structs.JobMinPriority, structs.JobMaxPriority, priority)
	}
	return nil
}

// warningText lists warnings as one text.
func warningText(warnings []string) string {
	if len(warnings) == 0 {
		return ""
	}
	noun := "warnings"
	if len(warnings) == 1 {
		noun = "warning"
	}
	return fmt.Sprintf("%d %s:\n\n* %s", len(warnings), noun, strings.Join(warnings, "\n* "))
}

// validateJob tells a job's faults and warnings and stores nothing.
func (b *Backend) validateJob(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.JobValidateRequest
	if err := decodeJob(r, &req, func() *structs.Job { return req.Job }); err != nil {
		return err
	}
	if err := b.prepareJob(req.Job, q); err != nil {
		return err
	}
	warnings := append(req.Job.Warnings(), req.Job.Unsupported()...)
	out := structs.JobValidateResponse{DriverConfigValidated: true, Warnings: warningText(warnings)}
	faults := b.jobFaults(req.Job)
	for _, fault := range faults {
		out.ValidationErrors = append(out.ValidationErrors, fault.Error())
	}
	if err := faults.Err(); err != nil {
		out.Error = err.Error()
	}
	setIndex(w, b.Store.Index())
	return answer(w, q, out)
}
