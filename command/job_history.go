package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobHistory() *spec {
	return &spec{name: "job history", args: "<job>", synopsis: "Show the versions of a job", client: true,
		help: `Lists the versions of a job that are kept, newest first. A job may be given by prefix. With -p each version is
compared with the one before it, with -diff-version or -diff-tag with the one that is named.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &historyFlags{}
			fs.BoolVar(&f.diffs, "p", false, "Show how each version differs from the one before it.")
			fs.StringVar(&f.diffTag, "diff-tag", "", "Show how versions differ from the one with the `TAG`.")
			fs.StringVar(&f.diffVersion, "diff-version", "", "Show how versions differ from `VERSION`.")
			fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&f.full, "full", false, "Print each version whole, as JSON.")
			fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&f.version, "version", "", "Show `VERSION` only.")
			return f.run
		}}
}

type historyFlags struct {
	diffs, asJSON, full                 bool
	diffTag, diffVersion, tmpl, version string
}

func (f *historyFlags) run(ctx context.Context, c *call) error {
	if f.diffTag != "" && f.diffVersion != "" {
		return errors.New("-diff-tag and -diff-version cannot be used together")
	}
	job, err := c.job(ctx, c.args[0])
	if err != nil {
		return err
	}
	answer, err := f.read(ctx, c, job)
	if err != nil {
		return err
	}
	versions, diffs := answer.Versions, answer.Diffs
	if f.version != "" {
		if versions, diffs, err = f.one(job, versions, diffs); err != nil {
			return err
		}
	}
	if done, err := data(c.out, versions, f.asJSON || f.full, f.tmpl); done {
		return err
	}
	for i, v := range versions {
		if i > 0 {
			c.printf("\n")
		}
		rows := [][2]string{{"Version", fmt.Sprint(v.Version)}, {"Stable", yesNo(v.Stable)},
			{"Submit Date", formatTime(time.Unix(0, v.SubmitTime))}}
		if tag := v.VersionTag; tag != nil {
			rows = append(rows, [2]string{"Tag Name", tag.Name})
			if tag.Description != "" {
				rows = append(rows, [2]string{"Tag Description", tag.Description})
			}
		}
		differs := i < len(diffs) && diffs[i].Type != structs.DiffTypeNone
		if differs {
			rows = append(rows, [2]string{"Diff", ""})
		}
		c.printf("%s\n", strings.TrimRight(pairs(rows...), " \n"))
		if differs {
			c.printf("%s", formatDiff(diffs[i], false, c.color))
		}
	}
	return nil
}

// read asks for the versions, with their differences when those are to be shown.
func (f *historyFlags) read(ctx context.Context, c *call, job *structs.Job) (*structs.JobVersionsResponse, error) {
	q := &api.QueryOptions{Namespace: structs.Val(job.Namespace)}
	opts := api.DiffOptions{Tag: f.diffTag}
	if f.diffVersion != "" {
		version, err := strconv.ParseUint(f.diffVersion, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("-diff-version needs a whole number, got %q", f.diffVersion)
		}
		opts.Version = &version
	}
	var answer *structs.JobVersionsResponse
	var err error
	if f.diffs || opts.Tag != "" || opts.Version != nil {
		answer, _, err = c.client.Jobs().VersionsDiff(ctx, structs.Val(job.ID), opts, q)
	} else {
		answer, _, err = c.client.Jobs().Versions(ctx, structs.Val(job.ID), q)
	}
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	return answer, nil
}

// one picks the version that was asked for, with its difference.
func (f *historyFlags) one(job *structs.Job, versions []*structs.Job, diffs []*structs.JobDiff) (
	[]*structs.Job, []*structs.JobDiff, error,
) {
	want, err := strconv.ParseUint(f.version, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("-version needs a whole number, got %q", f.version)
	}
	for i, v := range versions {
		if v.Version == want {
			return versions[i : i+1], diffs[min(i, len(diffs)):min(i+1, len(diffs))], nil
		}
	}
	return nil, nil, fmt.Errorf("job %q has no version %d", structs.Val(job.ID), want)
}
