package structs

import "fmt"

// RollbackOf says to which version a job goes back when its deployment d fails, and describes the failure as the public
// API does. current is the job's row, versions are its kept versions, the newest first, and why says why the deployment
// fails. No version is given when the job is another by now, when none was ever stable, and when the stable one is
// what failed: going back to it would fail in the same way for ever.
func RollbackOf(d *Deployment, current *Job, versions []*Job, why string) (*Job, string) {
	if current.Stopped() || current.Version != d.JobVersion || current.CreateIndex != d.JobCreateIndex {
		return nil, why
	}
	for _, v := range versions {
		switch {
		case !v.Stable || v.Stop || v.Version == current.Version || v.CreateIndex != current.CreateIndex:
			continue
		case v.SpecEqual(current):
			return nil, fmt.Sprintf("%s - not rolling back to stable job version %d as current job has same specification", why, v.Version)
		}
		return v, fmt.Sprintf("%s - rolling back to job version %d", why, v.Version)
	}
	return nil, why + " - no stable job version to auto revert to"
}

// AutoReverts says whether one of the groups named asks for the last stable version when its deployment fails; without
// names, whether any group does.
func (d *Deployment) AutoReverts(groups ...string) bool {
	if len(groups) == 0 {
		for _, g := range d.TaskGroups {
			if g.AutoRevert {
				return true
			}
		}
	}
	for _, name := range groups {
		if g := d.TaskGroups[name]; g != nil && g.AutoRevert {
			return true
		}
	}
	return false
}
