package endpoint

import (
	"net/http"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// readJobVersions lists the kept versions of a job. With diffs, each is compared with the one before it (the oldest
// with none: there is one difference less than versions), or all are compared with the one that is named.
func (b *Backend) readJobVersions(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	diffs, err := q.flag("diffs")
	if err != nil {
		return err
	}
	tag := q.values.Get("diff_tag")
	number, err := q.unsigned("diff_version")
	if err != nil {
		return err
	}
	numbered := q.values.Get("diff_version") != ""
	if tag != "" && numbered {
		return structs.Errorf(structs.CodeInvalid, "parameters diff_tag and diff_version exclude each other")
	}
	var versions []*structs.Job
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		versions = snap.JobVersions(ws, ns, r.Param("job_id"))
		if len(versions) == 0 {
			return snap.TableIndex(state.TableJobVersions)
		}
		var index uint64
		for _, version := range versions {
			index = max(index, version.ModifyIndex)
		}
		return index
	})
	if err != nil {
		return err
	}
	if len(versions) == 0 {
		return notFound("job versions")
	}
	out := structs.JobVersionsResponse{Versions: versions}
	switch {
	case tag != "" || numbered:
		base := slices.IndexFunc(versions, func(v *structs.Job) bool {
			if numbered {
				return v.Version == number
			}
			return v.VersionTag != nil && v.VersionTag.Name == tag
		})
		if base < 0 && numbered {
			return structs.Errorf(structs.CodeNotFound, "version %d not found", number)
		}
		if base < 0 {
			return structs.Errorf(structs.CodeNotFound, "tag %q not found", tag)
		}
		out.Diffs, err = versionDiffs(versions, func(int) *structs.Job { return versions[base] })
	case diffs:
		out.Diffs, err = versionDiffs(versions[:len(versions)-1], func(i int) *structs.Job { return versions[i+1] })
	}
	if err != nil {
		return err
	}
	return answer(w, q, out)
}

// versionDiffs compares each version with what before gives for its place.
func versionDiffs(versions []*structs.Job, before func(i int) *structs.Job) ([]*structs.JobDiff, error) {
	out := make([]*structs.JobDiff, len(versions))
	for i, version := range versions {
		diff, err := structs.DiffJobs(before(i), version, true)
		if err != nil {
			return nil, err
		}
		out[i] = diff
	}
	return out, nil
}
