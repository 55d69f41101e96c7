package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

type allocFSFlags struct {
	human, follow, stat, tail, byJob bool
	lines, bytes                     int64
	group                            string
}

func allocFS() *spec {
	return &spec{name: "alloc fs", args: "<allocation> [path]", synopsis: "Look into the directory of an allocation", client: true,
		help: `Lists a directory of an allocation, or prints a file. Without a path its top is listed. An allocation may be
given by prefix.`,
		minArgs: 1, maxArgs: 2,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &allocFSFlags{}
			fs.BoolVar(&f.human, "H", false, "Show sizes in bytes rather than units.")
			fs.BoolVar(&f.follow, "f", false, "Follow the file.")
			fs.BoolVar(&f.stat, "stat", false, "Show the facts of a file or directory, not its content.")
			fs.BoolVar(&f.tail, "tail", false, "Show the last lines only.")
			fs.Int64Var(&f.lines, "n", -1, "With -tail: how many `LINES`, 10 when not given.")
			fs.Int64Var(&f.bytes, "c", -1, "With -tail: how many `BYTES`.")
			fs.BoolVar(&f.byJob, "job", false, "The argument is a job; its newest running allocation is taken.")
			fs.StringVar(&f.group, "group", "", "With -job: an allocation of this `GROUP`.")
			fs.BoolVar(new(bool), "verbose", false, "Accepted.")
			return f.run
		}}
}

func (f *allocFSFlags) run(ctx context.Context, c *call) error {
	var a *structs.Allocation
	var err error
	if f.byJob {
		a, err = c.allocOfJob(ctx, c.args[0], f.group)
	} else {
		a, err = c.alloc(ctx, c.args[0])
	}
	if err != nil {
		return err
	}
	path := "/"
	if len(c.args) == 2 {
		path = c.args[1]
	}
	info, _, err := c.client.AllocFS().Stat(ctx, a.ID, path, nil)
	if err != nil {
		return fmt.Errorf("error reading %q: %s", path, api.Text(err))
	}
	switch {
	case f.stat:
		c.printf("%s", f.table([]*structs.AllocFileInfo{info}))
		return nil
	case info.IsDir:
		list, _, err := c.client.AllocFS().List(ctx, a.ID, path, nil)
		if err != nil {
			return fmt.Errorf("error listing %q: %s", path, api.Text(err))
		}
		c.printf("%s", f.table(list))
		return nil
	}
	return f.print(ctx, c, a.ID, path, info.Size)
}

func (f *allocFSFlags) print(ctx context.Context, c *call, id, path string, size int64) error {
	offset, lines := int64(0), -1
	if f.lines < -1 || f.bytes < -1 {
		return errors.New("-n and -c count what is shown: they cannot be negative")
	}
	if f.tail || f.lines >= 0 || f.bytes >= 0 {
		back := f.bytes
		if back < 0 {
			lines = 10
			if f.lines >= 0 {
				lines = int(f.lines)
			}
			back = int64(lines) * bytesPerLine
		}
		offset = max(size-back, 0)
	}
	frames, err := c.client.AllocFS().Stream(ctx, id, path, api.OriginStart, offset, f.follow, nil)
	if err != nil {
		return fmt.Errorf("error reading %q: %s", path, api.Text(err))
	}
	defer frames.Close()
	if lines >= 0 && !f.follow {
		return copyLastLines(c.out, frames, lines)
	}
	if _, err := io.Copy(c.out, frames); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("error reading %q: %w", path, err)
	}
	return nil
}

func (f *allocFSFlags) table(list []*structs.AllocFileInfo) string {
	rows := [][]string{{"Mode", "Size", "Modified Time", "Name"}}
	for _, e := range list {
		name := e.Name
		if e.IsDir {
			name += "/"
		}
		size := fmt.Sprint(e.Size)
		if !f.human {
			size = byteSize(e.Size)
		}
		rows = append(rows, []string{e.FileMode, size, formatTime(e.ModTime), name})
	}
	return table(rows)
}

func byteSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, unit := float64(n), 0
	for size >= 1024 && unit < len(units)-1 {
		size /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
