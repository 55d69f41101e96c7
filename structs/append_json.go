package structs

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// Lists of thousands of stubs are the largest answers of the API. Their encoders write the same JSON as encoding/json
// would, without reflection and without a copy; a test compares the two field by field. Parts that are rarely there
// are left to encoding/json.

// object writes the members of one JSON object. Names must need no escaping.
type object struct {
	dst   []byte
	wrote bool
}

func openObject(dst []byte) object { return object{dst: append(dst, '{')} }

func (o *object) close() []byte { return append(o.dst, '}') }

func (o *object) name(n string) {
	if o.wrote {
		o.dst = append(o.dst, ',')
	}
	o.wrote = true
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, n...)
	o.dst = append(o.dst, '"', ':')
}

func (o *object) str(n, v string) {
	o.name(n)
	o.dst = appendJSONString(o.dst, v)
}

func (o *object) int(n string, v int64) {
	o.name(n)
	o.dst = strconv.AppendInt(o.dst, v, 10)
}

func (o *object) uint(n string, v uint64) {
	o.name(n)
	o.dst = strconv.AppendUint(o.dst, v, 10)
}

func (o *object) bool(n string, v bool) {
	o.name(n)
	o.dst = strconv.AppendBool(o.dst, v)
}

func (o *object) time(n string, v time.Time) {
	o.name(n)
	o.dst = append(o.dst, '"')
	o.dst = v.AppendFormat(o.dst, time.RFC3339Nano)
	o.dst = append(o.dst, '"')
}

func (o *object) null(n string) {
	o.name(n)
	o.dst = append(o.dst, "null"...)
}

func (o *object) strs(n string, list []string) {
	o.name(n)
	o.dst = appendJSONStrings(o.dst, list)
}

func (o *object) strMap(n string, m map[string]string) {
	o.name(n)
	o.dst = appendJSONMap(o.dst, m, appendJSONString)
}

// any leaves a value to encoding/json. Only types that it can encode may be given.
func (o *object) any(n string, v any) {
	o.name(n)
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte("null") // not reached: all types of the data model can be encoded
	}
	o.dst = append(o.dst, data...)
}

// appendJSONString writes a string; one that needs escaping is left to encoding/json.
func appendJSONString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			data, _ := json.Marshal(s) // a string can always be encoded
			return append(dst, data...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendJSONStrings(dst []byte, list []string) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, s)
	}
	return append(dst, ']')
}

// appendJSONMap writes a map in the order of its keys, as encoding/json does.
func appendJSONMap[V any](dst []byte, m map[string]V, value func([]byte, V) []byte) []byte {
	if m == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	var few [12]string // keeps most maps off the heap
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, k)
		dst = append(dst, ':')
		dst = value(dst, m[k])
	}
	return append(dst, '}')
}

// AppendJSON appends the stub's JSON to dst.
func (a *AllocationListStub) AppendJSON(dst []byte) []byte {
	if a == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("ID", a.ID)
	o.str("EvalID", a.EvalID)
	o.str("Name", a.Name)
	o.str("Namespace", a.Namespace)
	o.str("NodeID", a.NodeID)
	o.str("NodeName", a.NodeName)
	o.str("JobID", a.JobID)
	o.str("JobType", a.JobType)
	o.uint("JobVersion", a.JobVersion)
	o.str("TaskGroup", a.TaskGroup)
	if a.AllocatedResources != nil {
		o.any("AllocatedResources", a.AllocatedResources)
	}
	o.str("DesiredStatus", a.DesiredStatus)
	o.str("DesiredDescription", a.DesiredDescription)
	o.str("ClientStatus", a.ClientStatus)
	o.str("ClientDescription", a.ClientDescription)
	o.name("TaskStates")
	o.dst = appendJSONMap(o.dst, a.TaskStates, appendTaskState)
	if s := a.DeploymentStatus; s == nil {
		o.null("DeploymentStatus")
	} else {
		o.name("DeploymentStatus")
		p := openObject(o.dst)
		if s.Healthy == nil {
			p.null("Healthy")
		} else {
			p.bool("Healthy", *s.Healthy)
		}
		p.time("Timestamp", s.Timestamp)
		p.bool("Canary", s.Canary)
		p.uint("ModifyIndex", s.ModifyIndex)
		o.dst = p.close()
	}
	o.str("FollowupEvalID", a.FollowupEvalID)
	o.str("NextAllocation", a.NextAllocation)
	if a.RescheduleTracker == nil {
		o.null("RescheduleTracker")
	} else {
		o.any("RescheduleTracker", a.RescheduleTracker)
	}
	o.strs("PreemptedAllocations", a.PreemptedAllocations)
	o.str("PreemptedByAllocation", a.PreemptedByAllocation)
	o.uint("CreateIndex", a.CreateIndex)
	o.uint("ModifyIndex", a.ModifyIndex)
	o.int("CreateTime", a.CreateTime)
	o.int("ModifyTime", a.ModifyTime)
	if a.Condition != nil {
		o.any("Condition", a.Condition)
	}
	return o.close()
}

// MarshalJSON shows packed events like others.
func (t TaskState) MarshalJSON() ([]byte, error) { return appendTaskState(nil, &t), nil }

func appendTaskState(dst []byte, s *TaskState) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("State", s.State)
	o.bool("Failed", s.Failed)
	o.uint("Restarts", s.Restarts)
	o.time("LastRestart", s.LastRestart)
	o.time("StartedAt", s.StartedAt)
	o.time("FinishedAt", s.FinishedAt)
	if s.Events == nil && len(s.Packed) == 0 {
		o.null("Events")
		return o.close()
	}
	o.name("Events")
	o.dst = append(o.dst, '[')
	if s.Events == nil {
		o.dst = appendPackedEvents(o.dst, s.Packed)
	}
	for i, e := range s.Events {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		if e == nil {
			o.dst = append(o.dst, "null"...)
			continue
		}
		o.dst = appendTaskEvent(o.dst, e, nil)
	}
	o.dst = append(o.dst, ']')
	return o.close()
}

// appendPackedEvents writes packed events without making values of them.
func appendPackedEvents(dst, packed []byte) []byte {
	u := unpack(packed)
	var e TaskEvent
	for first := true; u.next(&e); first = false {
		if !first {
			dst = append(dst, ',')
		}
		if !u.there {
			dst = append(dst, "null"...)
			continue
		}
		dst = appendTaskEvent(dst, &e, &u)
	}
	return dst
}

func (u *unpacker) appendDetails(dst []byte) []byte {
	if !u.detailed {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	for i := 0; i < u.details.n; i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, u.details.at(i)), ':')
		dst = appendJSONString(dst, u.details.at(i+1))
	}
	return append(dst, '}')
}

// appendTaskEvent writes an event; packed, if it comes from there, has its Details.
func appendTaskEvent(dst []byte, e *TaskEvent, packed *unpacker) []byte {
	o := openObject(dst)
	o.str("Type", e.Type)
	o.int("Time", e.Time)
	o.str("DisplayMessage", e.DisplayMessage)
	if packed == nil {
		o.strMap("Details", e.Details)
	} else {
		o.name("Details")
		o.dst = packed.appendDetails(o.dst)
	}
	o.str("Message", e.Message)
	o.bool("FailsTask", e.FailsTask)
	o.str("RestartReason", e.RestartReason)
	o.str("SetupError", e.SetupError)
	o.str("DriverError", e.DriverError)
	o.str("DriverMessage", e.DriverMessage)
	o.int("ExitCode", int64(e.ExitCode))
	o.int("Signal", int64(e.Signal))
	o.str("KillReason", e.KillReason)
	o.int("KillTimeout", int64(e.KillTimeout))
	o.str("KillError", e.KillError)
	o.int("StartDelay", e.StartDelay)
	o.str("DownloadError", e.DownloadError)
	o.str("ValidationError", e.ValidationError)
	o.int("DiskLimit", e.DiskLimit)
	o.int("DiskSize", e.DiskSize)
	o.str("FailedSibling", e.FailedSibling)
	o.str("VaultError", e.VaultError)
	o.str("TaskSignalReason", e.TaskSignalReason)
	o.str("TaskSignal", e.TaskSignal)
	o.str("GenericSource", e.GenericSource)
	return o.close()
}

// AppendJSON appends the stub's JSON to dst.
func (j *JobListStub) AppendJSON(dst []byte) []byte {
	if j == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("ID", j.ID)
	o.str("ParentID", j.ParentID)
	o.str("Name", j.Name)
	if j.Namespace != "" {
		o.str("Namespace", j.Namespace)
	}
	o.strs("Datacenters", j.Datacenters)
	o.str("Type", j.Type)
	o.int("Priority", int64(j.Priority))
	o.bool("Periodic", j.Periodic)
	o.bool("ParameterizedJob", j.ParameterizedJob)
	o.bool("Stop", j.Stop)
	o.str("Status", j.Status)
	o.str("StatusDescription", j.StatusDescription)
	o.name("JobSummary")
	o.dst = j.JobSummary.appendJSON(o.dst)
	o.uint("CreateIndex", j.CreateIndex)
	o.uint("ModifyIndex", j.ModifyIndex)
	o.uint("JobModifyIndex", j.JobModifyIndex)
	o.int("SubmitTime", j.SubmitTime)
	if len(j.Meta) > 0 {
		o.strMap("Meta", j.Meta)
	}
	return o.close()
}

func (s *JobSummary) appendJSON(dst []byte) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("JobID", s.JobID)
	o.str("Namespace", s.Namespace)
	o.name("Summary")
	o.dst = appendJSONMap(o.dst, s.Summary, func(dst []byte, g TaskGroupSummary) []byte {
		o := openObject(dst)
		o.int("Queued", int64(g.Queued))
		o.int("Complete", int64(g.Complete))
		o.int("Failed", int64(g.Failed))
		o.int("Running", int64(g.Running))
		o.int("Starting", int64(g.Starting))
		o.int("Lost", int64(g.Lost))
		o.int("Unknown", int64(g.Unknown))
		return o.close()
	})
	if c := s.Children; c == nil {
		o.null("Children")
	} else {
		o.name("Children")
		p := openObject(o.dst)
		p.int("Pending", c.Pending)
		p.int("Running", c.Running)
		p.int("Dead", c.Dead)
		o.dst = p.close()
	}
	o.uint("CreateIndex", s.CreateIndex)
	o.uint("ModifyIndex", s.ModifyIndex)
	return o.close()
}

// AppendJSON appends the stub's JSON to dst.
func (e *EvaluationStub) AppendJSON(dst []byte) []byte {
	if e == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("ID", e.ID)
	o.int("Priority", int64(e.Priority))
	o.str("Type", e.Type)
	o.str("TriggeredBy", e.TriggeredBy)
	o.str("Namespace", e.Namespace)
	o.str("JobID", e.JobID)
	o.str("NodeID", e.NodeID)
	o.str("DeploymentID", e.DeploymentID)
	o.str("Status", e.Status)
	o.str("StatusDescription", e.StatusDescription)
	o.time("WaitUntil", e.WaitUntil)
	o.str("NextEval", e.NextEval)
	o.str("PreviousEval", e.PreviousEval)
	o.str("BlockedEval", e.BlockedEval)
	o.uint("CreateIndex", e.CreateIndex)
	o.uint("ModifyIndex", e.ModifyIndex)
	o.int("CreateTime", e.CreateTime)
	o.int("ModifyTime", e.ModifyTime)
	return o.close()
}

// AppendJSON appends the evaluation's JSON to dst; lists of evaluations show them whole.
func (e *Evaluation) AppendJSON(dst []byte) []byte {
	if e == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("ID", e.ID)
	o.int("Priority", int64(e.Priority))
	o.str("Type", e.Type)
	o.str("TriggeredBy", e.TriggeredBy)
	o.str("Namespace", e.Namespace)
	o.str("JobID", e.JobID)
	o.uint("JobModifyIndex", e.JobModifyIndex)
	o.str("NodeID", e.NodeID)
	o.uint("NodeModifyIndex", e.NodeModifyIndex)
	o.str("DeploymentID", e.DeploymentID)
	o.str("Status", e.Status)
	o.str("StatusDescription", e.StatusDescription)
	o.int("Wait", int64(e.Wait))
	o.time("WaitUntil", e.WaitUntil)
	o.str("NextEval", e.NextEval)
	o.str("PreviousEval", e.PreviousEval)
	o.str("BlockedEval", e.BlockedEval)
	if e.RelatedEvals == nil {
		o.null("RelatedEvals")
	} else {
		o.any("RelatedEvals", e.RelatedEvals)
	}
	if e.FailedTGAllocs == nil {
		o.null("FailedTGAllocs")
	} else {
		o.any("FailedTGAllocs", e.FailedTGAllocs)
	}
	if e.PlanAnnotations == nil {
		o.null("PlanAnnotations")
	} else {
		o.any("PlanAnnotations", e.PlanAnnotations)
	}
	o.name("ClassEligibility")
	o.dst = appendJSONMap(o.dst, e.ClassEligibility, strconv.AppendBool)
	o.bool("EscapedComputedClass", e.EscapedComputedClass)
	o.str("QuotaLimitReached", e.QuotaLimitReached)
	o.strs("MissingNonNodeResources", e.MissingNonNodeResources)
	o.bool("AnnotatePlan", e.AnnotatePlan)
	o.name("QueuedAllocations")
	o.dst = appendJSONMap(o.dst, e.QueuedAllocations, func(dst []byte, n int) []byte {
		return strconv.AppendInt(dst, int64(n), 10)
	})
	o.uint("SnapshotIndex", e.SnapshotIndex)
	o.uint("CreateIndex", e.CreateIndex)
	o.uint("ModifyIndex", e.ModifyIndex)
	o.int("CreateTime", e.CreateTime)
	o.int("ModifyTime", e.ModifyTime)
	return o.close()
}

// AppendJSON appends the stub's JSON to dst.
func (n *NodeListStub) AppendJSON(dst []byte) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.str("Address", n.Address)
	o.str("ID", n.ID)
	if len(n.Attributes) > 0 {
		o.strMap("Attributes", n.Attributes)
	}
	o.str("Datacenter", n.Datacenter)
	o.str("Name", n.Name)
	o.str("NodeClass", n.NodeClass)
	o.str("NodePool", n.NodePool)
	o.str("Version", n.Version)
	o.bool("Drain", n.Drain)
	o.str("SchedulingEligibility", n.SchedulingEligibility)
	o.str("Status", n.Status)
	o.str("StatusDescription", n.StatusDescription)
	o.name("Drivers")
	o.dst = appendJSONMap(o.dst, n.Drivers, appendDriverInfo)
	if n.NodeResources != nil {
		o.any("NodeResources", n.NodeResources)
	}
	if n.ReservedResources != nil {
		o.any("ReservedResources", n.ReservedResources)
	}
	if n.LastDrain == nil {
		o.null("LastDrain")
	} else {
		o.any("LastDrain", n.LastDrain)
	}
	if n.Maintenance != nil {
		o.any("Maintenance", n.Maintenance)
	}
	o.uint("CreateIndex", n.CreateIndex)
	o.uint("ModifyIndex", n.ModifyIndex)
	return o.close()
}

func appendDriverInfo(dst []byte, d *DriverInfo) []byte {
	if d == nil {
		return append(dst, "null"...)
	}
	o := openObject(dst)
	o.strMap("Attributes", d.Attributes)
	o.bool("Detected", d.Detected)
	o.bool("Healthy", d.Healthy)
	o.str("HealthDescription", d.HealthDescription)
	o.time("UpdateTime", d.UpdateTime)
	return o.close()
}
