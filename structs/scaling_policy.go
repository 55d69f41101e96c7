package structs

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// ScalingPolicies gives the policies of a job's groups and tasks as autoscalers see them, in the order of the job; those
// of its jobspec are not touched. A stopped job has none. The job must be canonical.
func (j *Job) ScalingPolicies() []*ScalingPolicy {
	if j == nil || j.Stop {
		return nil
	}
	var out []*ScalingPolicy
	j.eachScalingPolicy(func(p *ScalingPolicy) {
		seen := *p
		seen.Namespace = Val(j.Namespace)
		if seen.ID == "" { // stored before servers numbered policies
			seen.ID = j.scalingPolicyID(p)
		}
		if seen.CreateIndex == 0 {
			seen.CreateIndex, seen.ModifyIndex = j.CreateIndex, j.JobModifyIndex
		}
		out = append(out, &seen)
	})
	return out
}

// NumberScalingPolicies gives the policies of a job that is stored at index, after old or after nothing, their ids and
// indexes. An id stays the same for as long as the job is not purged; a policy that is as it was keeps both its indexes,
// one that a stopped job had is a new one. Groups and tasks which change are replaced, not written to.
func (j *Job) NumberScalingPolicies(old *Job, index uint64) {
	before := map[string]*ScalingPolicy{}
	for _, p := range old.ScalingPolicies() {
		before[p.ID] = p
	}
	number := func(p *ScalingPolicy) *ScalingPolicy {
		if p == nil {
			return nil
		}
		out := *p
		out.ID, out.Namespace = j.scalingPolicyID(p), "" // the job tells it, and its Target
		out.CreateIndex, out.ModifyIndex = index, index
		if was := before[out.ID]; was != nil {
			out.CreateIndex = was.CreateIndex
			if specEqual(reflect.ValueOf(was).Elem(), reflect.ValueOf(p).Elem()) {
				out.ModifyIndex = was.ModifyIndex
			}
		}
		return &out
	}
	groups := make([]*TaskGroup, len(j.TaskGroups))
	for i, given := range j.TaskGroups {
		group := *given
		group.Scaling = number(given.Scaling)
		group.Tasks = make([]*Task, len(given.Tasks))
		for k, task := range given.Tasks {
			if len(task.ScalingPolicies) > 0 {
				changed := *task
				changed.ScalingPolicies = make([]*ScalingPolicy, len(task.ScalingPolicies))
				for n, p := range task.ScalingPolicies {
					changed.ScalingPolicies[n] = number(p)
				}
				task = &changed
			}
			group.Tasks[k] = task
		}
		groups[i] = &group
	}
	j.TaskGroups = groups
}

// HasScalingPolicies says whether a group or task of the job has a scaling block, be the job stopped or not.
func (j *Job) HasScalingPolicies() bool {
	found := false
	j.eachScalingPolicy(func(*ScalingPolicy) { found = true })
	return found
}

func (j *Job) eachScalingPolicy(do func(*ScalingPolicy)) {
	for _, group := range j.TaskGroups {
		if group.Scaling != nil {
			do(group.Scaling)
		}
		for _, task := range group.Tasks {
			for _, p := range task.ScalingPolicies {
				do(p)
			}
		}
	}
}

// scalingPolicyID is made of what a policy scales, so that every server and every version of the job has the same one.
func (j *Job) scalingPolicyID(p *ScalingPolicy) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"scaling policy", Val(j.Namespace), Val(j.ID), strconv.FormatUint(j.CreateIndex, 10),
		p.Target["Group"], p.Target["Task"], p.Type,
	}, "\x00")))
	sum[6] = sum[6]&0x0f | 0x80 // version 8: of our own making
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Stub gives what lists show of a policy.
func (s *ScalingPolicy) Stub() *ScalingPolicyListStub {
	return &ScalingPolicyListStub{ID: s.ID, Enabled: Val(s.Enabled), Type: s.Type, Target: s.Target,
		CreateIndex: s.CreateIndex, ModifyIndex: s.ModifyIndex}
}
