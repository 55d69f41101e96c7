package endpoint

import (
	"net/http"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// jobStatus is what an overview of jobs shows of one.
type jobStatus struct {
	structs.NamespacedID
	Name             string
	Type             string
	NodePool         string
	Datacenters      []string
	Priority         int
	Version          uint64
	ParentID         string
	Status           string
	Stop             bool
	SubmitTime       int64
	ModifyIndex      uint64
	ChildStatuses    []string
	GroupCountSum    int
	LatestDeployment *deploymentStatus
	Allocs           []allocStatus
}

type deploymentStatus struct {
	ID                string
	IsActive          bool
	JobVersion        uint64
	Status            string
	StatusDescription string
	AllAutoPromote    bool
	RequiresPromotion bool
}

type allocStatus struct {
	ID               string
	Group            string
	ClientStatus     string
	NodeID           string
	DeploymentStatus struct {
		Canary  *bool
		Healthy *bool
	}
	JobVersion     uint64
	FollowupEvalID string
	HasPausedTask  bool
}

// jobStatuses lists jobs with their allocations: all of them, the newest first, or those named in the body.
func (b *Backend) jobStatuses(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.JobStatusesRequest
	if r.Method == http.MethodPost {
		if _, err := decodeOptional(r, &req); err != nil {
			return err
		}
	}
	children, err := q.flag("include_children")
	if err != nil {
		return err
	}
	children = children || req.IncludeChildren
	named := map[structs.NamespacedID]bool{}
	for _, id := range req.Jobs {
		if id.Namespace == "" {
			id.Namespace = structs.DefaultNamespace
		}
		named[id] = true
	}
	var at *state.Snapshot
	err = b.block(w, r, q, func(_ memdb.WatchSet, snap *state.Snapshot) uint64 {
		at = snap // of many tables, so nothing is added to ws: see block
		return snap.TableIndex(state.TableJobs, state.TableAllocs, state.TableDeployments)
	})
	if err != nil {
		return err
	}
	namespace := q.namespace
	if len(named) > 0 {
		namespace = structs.AllNamespaces
	}
	jobAge := func(j *structs.Job) age {
		return age{j.ModifyIndex, structs.Val(j.Namespace) + "." + structs.Val(j.ID)}
	}
	q.reverse = !q.reverse
	return answerList(w, q, list[*structs.Job]{
		rows:  byAge(at.Jobs(nil, namespace), jobAge),
		token: func(j *structs.Job) string { return jobAge(j).token() },
		keep: func(j *structs.Job) bool {
			if len(named) > 0 {
				return named[structs.NamespacedID{Namespace: structs.Val(j.Namespace), ID: structs.Val(j.ID)}]
			}
			return (children || j.ParentID == "") && hasPrefix(structs.Val(j.ID), q.prefix)
		},
		show: func(j *structs.Job) any { return statusOf(at, j) },
	})
}

func statusOf(snap *state.Snapshot, job *structs.Job) *jobStatus {
	ns, id := structs.Val(job.Namespace), structs.Val(job.ID)
	out := &jobStatus{
		NamespacedID: structs.NamespacedID{Namespace: ns, ID: id},
		Name:         structs.Val(job.Name),
		Type:         structs.Val(job.Type),
		NodePool:     structs.Val(job.NodePool),
		Datacenters:  job.Datacenters,
		Priority:     structs.Val(job.Priority),
		Version:      job.Version,
		ParentID:     job.ParentID,
		Status:       job.Status,
		Stop:         job.Stop,
		SubmitTime:   job.SubmitTime,
		ModifyIndex:  job.ModifyIndex,
		Allocs:       []allocStatus{},
	}
	for _, group := range job.TaskGroups {
		out.GroupCountSum += structs.Val(group.Count)
	}
	if !job.HasOwnAllocations() {
		out.ChildStatuses = []string{}
		for child := range snap.Children(nil, ns, id) {
			out.ChildStatuses = append(out.ChildStatuses, child.Status)
		}
	}
	for _, alloc := range snap.AllocsByJob(nil, ns, id) {
		row := allocStatus{
			ID: alloc.ID, Group: alloc.TaskGroup, ClientStatus: alloc.ClientStatus, NodeID: alloc.NodeID,
			JobVersion: alloc.JobVersion, FollowupEvalID: alloc.FollowupEvalID,
		}
		if health := alloc.DeploymentStatus; health != nil {
			row.DeploymentStatus.Canary = &health.Canary
			row.DeploymentStatus.Healthy = health.Healthy
		}
		out.Allocs = append(out.Allocs, row)
		out.ModifyIndex = max(out.ModifyIndex, alloc.ModifyIndex)
	}
	if d := snap.LatestDeployment(nil, ns, id); d != nil {
		out.LatestDeployment = deploymentStatusOf(job, d)
	}
	return out
}

func deploymentStatusOf(job *structs.Job, d *structs.Deployment) *deploymentStatus {
	out := &deploymentStatus{
		ID: d.ID, IsActive: d.Active(), JobVersion: d.JobVersion, Status: d.Status,
		StatusDescription: d.StatusDescription, AllAutoPromote: true,
	}
	for name, group := range d.TaskGroups {
		if group.DesiredCanaries > 0 && !group.Promoted {
			out.RequiresPromotion = d.Active()
		}
		spec := job.LookupTaskGroup(name)
		if spec == nil || spec.Update == nil || !structs.Val(spec.Update.AutoPromote) {
			out.AllAutoPromote = false
		}
	}
	return out
}
