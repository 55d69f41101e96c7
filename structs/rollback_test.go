package structs

import "testing"

func TestRollbackOf(t *testing.T) {
	version := func(n uint64, meta string, stable bool) *Job {
		return &Job{ID: Ptr("web"), Version: n, CreateIndex: 5, Stable: stable, Meta: map[string]string{"v": meta}}
	}
	current := version(3, "c", false)
	stopped, anew := version(3, "c", false), version(3, "c", false)
	stopped.Stop, anew.CreateIndex = true, 99
	d := &Deployment{JobVersion: 3, JobCreateIndex: 5}
	for name, c := range map[string]struct {
		current  *Job
		versions []*Job
		target   uint64
		says     string
	}{
		"the newest stable one": {current, []*Job{current, version(2, "b", true), version(1, "a", true)}, 2,
			"failed - rolling back to job version 2"},
		"older ones that are not stable": {current, []*Job{current, version(2, "b", false), version(1, "a", true)}, 1,
			"failed - rolling back to job version 1"},
		"nothing stable": {current, []*Job{current, version(2, "b", false)}, 0, "failed - no stable job version to auto revert to"},
		"the same again": {current, []*Job{current, version(2, "c", true), version(1, "a", true)}, 0,
			"failed - not rolling back to stable job version 2 as current job has same specification"},
		"overtaken":           {version(4, "d", false), []*Job{version(2, "b", true)}, 0, "failed"},
		"stopped":             {stopped, []*Job{version(2, "b", true)}, 0, "failed"},
		"purged":              {nil, nil, 0, "failed"},
		"purged and run anew": {anew, []*Job{version(2, "b", true)}, 0, "failed"},
	} {
		target, says := RollbackOf(d, c.current, c.versions, "failed")
		if says != c.says || (target == nil) != (c.target == 0) || target != nil && target.Version != c.target {
			t.Errorf("%s: version %+v, %q", name, target, says)
		}
	}
}

func TestAutoReverts(t *testing.T) {
	d := &Deployment{TaskGroups: map[string]*DeploymentState{"a": {}, "b": {AutoRevert: true}}}
	if !d.AutoReverts() || !d.AutoReverts("a", "b") || d.AutoReverts("a") || d.AutoReverts("gone") {
		t.Error("wrong group asked")
	}
}
