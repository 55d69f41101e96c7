package structs

import (
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// DispatchLaunchSuffix stands between the id of a parameterized job and the rest of the id of a child.
	DispatchLaunchSuffix = "/dispatch-"
	// DispatchPayloadLimit bounds the payload of a dispatch, in bytes.
	DispatchPayloadLimit = 16 * 1024
	// DispatchMetaLimit bounds the keys and values of a dispatch's meta together, in bytes. The public specification names no
	// limit; all of it becomes part of each task's environment, of which an operating system takes 128 KiB in one value.
	DispatchMetaLimit = 64 * 1024
)

// Dispatch is what a parameterized job is dispatched with.
type Dispatch struct {
	Payload          []byte
	Meta             map[string]string
	Priority         int // 0: the job's own
	IdempotencyToken string
}

// CheckDispatch tells all that keeps the job from being dispatched so, as one error with CodeInvalid; nil: nothing.
func (j *Job) CheckDispatch(d Dispatch) error {
	if !j.IsParameterized() {
		return Errorf(CodeInvalid, "specified job %q is not a parameterized job", Val(j.ID))
	}
	if j.Stop {
		return Errorf(CodeInvalid, "specified job %q is stopped", Val(j.ID))
	}
	var errs Errors
	config := j.ParameterizedJob
	switch {
	case len(d.Payload) == 0 && config.Payload == PayloadRequired:
		errs.Addf("payload is not provided but required by parameterized job")
	case len(d.Payload) > 0 && config.Payload == PayloadForbidden:
		errs.Addf("payload is provided but forbidden by parameterized job")
	case len(d.Payload) > DispatchPayloadLimit:
		errs.Addf("payload exceeds maximum size; %d > %d", len(d.Payload), DispatchPayloadLimit)
	}
	if d.Priority != 0 && (d.Priority < JobMinPriority || d.Priority > JobMaxPriority) {
		errs.Addf("job priority must be from %d to %d (it is %d)", JobMinPriority, JobMaxPriority, d.Priority)
	}
	var unknown, missing []string
	size := 0
	for key, value := range d.Meta {
		size += len(key) + len(value)
	}
	if size > DispatchMetaLimit {
		errs.Addf("meta exceeds maximum size; %d > %d", size, DispatchMetaLimit)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Meta)) {
		if !slices.Contains(config.MetaRequired, key) && !slices.Contains(config.MetaOptional, key) {
			unknown = append(unknown, key)
		}
	}
	for _, key := range config.MetaRequired {
		if _, ok := d.Meta[key]; !ok {
			missing = append(missing, key)
		}
	}
	if len(unknown) > 0 {
		errs.Addf("dispatch request included unpermitted metadata keys: %s", strings.Join(unknown, ", "))
	}
	if len(missing) > 0 {
		errs.Addf("dispatch did not provide required meta keys: %s", strings.Join(missing, ", "))
	}
	if err := errs.Err(); err != nil {
		return &CodedError{Code: CodeInvalid, Text: err.Error(), Err: err}
	}
	return nil
}

// DispatchedChild is the job that a dispatch runs. The servers' fields are those of a new job.
func (j *Job) DispatchedChild(id string, d Dispatch) *Job {
	child := j.child(id)
	child.Dispatched, child.DispatchIdempotencyToken = true, d.IdempotencyToken
	child.Payload = d.Payload
	if len(d.Meta) > 0 {
		child.Meta = maps.Clone(j.Meta)
		if child.Meta == nil {
			child.Meta = make(map[string]string, len(d.Meta))
		}
		maps.Copy(child.Meta, d.Meta)
	}
	if d.Priority != 0 {
		child.Priority = &d.Priority
	}
	return child
}

// DispatchedChildID is the id of a dispatched child: the prefix, when there is one, the epoch and a random part of
// eight hexadecimal digits make it unique.
func DispatchedChildID(parent, prefix string, at time.Time, random string) string {
	if prefix != "" {
		prefix += "-"
	}
	return parent + DispatchLaunchSuffix + prefix + epoch(at) + "-" + random
}
