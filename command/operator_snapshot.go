package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/nomadlite/archive"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func snapshotSave() *spec {
	return &spec{name: "operator snapshot save", args: "<file>", synopsis: "Save the state of the cluster", client: true,
		help: `Takes a snapshot of the servers' state and writes it to <file>, checked: the file is there wholly or not at all. Without
<file> it is nomad-<region>-<time>.snap, or nomad-<time>.snap. The servers' key file (data_dir/keyring) is not in it: keep that apart.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var redact, stale bool
			fs.BoolVar(&redact, "redact", false, "Leave the root keys out of the file.")
			fs.BoolVar(&stale, "stale", false, "Let any server answer, also while there is no leader.")
			return func(ctx context.Context, c *call) error { return saveSnapshot(ctx, c, redact, stale) }
		}}
}

func saveSnapshot(ctx context.Context, c *call, redact, stale bool) error {
	name := "nomad-" + time.Now().UTC().Format("20060102150405") + ".snap"
	if region := c.client.Region(); region != "" {
		name = "nomad-" + region + "-" + time.Now().UTC().Format("20060102150405") + ".snap"
	}
	if len(c.args) == 1 {
		name = c.args[0]
	}
	var meta archive.Meta
	err := writeWhole(name, func(f *os.File) error {
		if _, err := c.client.Operator().Snapshot(ctx, f, &api.QueryOptions{AllowStale: stale}); err != nil {
			return errors.New(api.Text(err))
		}
		_, err := f.Seek(0, io.SeekStart)
		if err == nil {
			meta, err = archive.Read(f, func(r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
		}
		if err == nil && redact {
			err = redactArchive(f)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("error saving snapshot: %w", err)
	}
	c.printf("State file written to %s\nIt holds the state at index %d.\n", name, meta.Index)
	return nil
}

// writeWhole makes a file that is there wholly or not at all.
func writeWhole(name string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func snapshotRestore() *spec {
	return &spec{name: "operator snapshot restore", args: "<file>", synopsis: "Restore the state of the cluster", client: true,
		help: `Puts the state that <file> holds in the place of the cluster's. What was registered since is forgotten: nodes stop allocations
that the restored state does not know, and start those which it wants. A file that is cut off or damaged is refused
before anything is touched. Root keys that the servers' key file does not open are left out.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(ctx context.Context, c *call) error {
				f, err := os.Open(c.args[0])
				if err != nil {
					return fmt.Errorf("error opening snapshot: %w", err)
				}
				defer f.Close()
				if _, err := c.client.Operator().RestoreSnapshot(ctx, f, nil); err != nil {
					return fmt.Errorf("error restoring snapshot: %s", api.Text(err))
				}
				c.printf("Snapshot Restored\n")
				return nil
			}
		}}
}

// snapshotType is what a snapshot holds of one table.
type snapshotType struct {
	Name  string
	Count int
	Size  int64 // bytes
}

// snapshotFacts is what operator snapshot inspect prints as JSON.
type snapshotFacts struct {
	archive.Meta
	Types []*snapshotType
	Total snapshotType
}

// openSnapshot reads a whole archive.
func openSnapshot(name string) (archive.Meta, *state.Snapshot, error) {
	f, err := os.Open(name)
	if err != nil {
		return archive.Meta{}, nil, fmt.Errorf("error opening snapshot: %w", err)
	}
	defer f.Close()
	store := state.New(state.Config{})
	meta, err := archive.Read(f, store.Restore)
	if err != nil {
		return archive.Meta{}, nil, fmt.Errorf("error reading %s: %w", name, err)
	}
	return meta, store.Snapshot(), nil
}

func snapshotInspect() *spec {
	return &spec{name: "operator snapshot inspect", args: "<file>", synopsis: "Show what a snapshot holds",
		help:    "Checks a file that operator snapshot save wrote, and shows what it holds, the largest first.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			return func(_ context.Context, c *call) error {
				facts, err := inspectSnapshot(c.args[0])
				if err != nil {
					return err
				}
				if done, err := data(c.out, facts, asJSON, ""); done {
					return err
				}
				c.printf("%s", pairs([2]string{"Created", facts.Created.Format(time.RFC3339)}, [2]string{"ID", facts.ID},
					[2]string{"Size", byteSize(facts.Size)}, [2]string{"Index", fmt.Sprint(facts.Index)},
					[2]string{"Term", fmt.Sprint(facts.Term)}, [2]string{"Version", fmt.Sprint(facts.Version)}))
				rows := [][]string{{"Type", "Count", "Size"}}
				for _, t := range append(facts.Types, &facts.Total) {
					rows = append(rows, []string{t.Name, fmt.Sprint(t.Count), byteSize(t.Size)})
				}
				c.printf("\n%s", table(rows))
				return nil
			}
		}}
}

func inspectSnapshot(name string) (*snapshotFacts, error) {
	meta, snap, err := openSnapshot(name)
	if err != nil {
		return nil, err
	}
	facts := &snapshotFacts{Meta: meta, Total: snapshotType{Name: "Total"}}
	byName := map[string]*snapshotType{}
	err = snap.Records(func(name string, record any) error {
		raw, err := codec.Marshal(record)
		if err != nil {
			return err
		}
		t := byName[name]
		if t == nil {
			t = &snapshotType{Name: name}
			byName[name] = t
			facts.Types = append(facts.Types, t)
		}
		for _, sum := range []*snapshotType{t, &facts.Total} {
			sum.Count++
			sum.Size += int64(len(raw))
		}
		return nil
	})
	slices.SortStableFunc(facts.Types, func(a, b *snapshotType) int { return cmp.Compare(b.Size, a.Size) })
	return facts, err
}

func snapshotState() *spec {
	return &spec{name: "operator snapshot state", args: "<file>", synopsis: "Print the state that a snapshot holds",
		help: `Prints the state in a file that operator snapshot save wrote as JSON: the records of each table. Secrets are left out. It is a
tool for finding faults; its form may change.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var filter string
			fs.StringVar(&filter, "filter", "", "Only records for which the `EXPRESSION` holds, as in filters of the API.")
			return func(_ context.Context, c *call) error { return printState(c, filter) }
		}}
}

func printState(c *call, filter string) error {
	matches, err := recordFilter(filter)
	if err != nil {
		return err
	}
	_, snap, err := openSnapshot(c.args[0])
	if err != nil {
		return err
	}
	out := map[string][]any{}
	err = snap.Records(func(name string, record any) error {
		if matches(record) {
			out[name] = append(out[name], record)
		}
		return nil
	})
	if err != nil {
		return err
	}
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func snapshotRedact() *spec {
	return &spec{name: "operator snapshot redact", args: "<file>", synopsis: "Take the root keys out of a snapshot",
		help: `Takes the root keys out of a file that operator snapshot save wrote, in its place, so that it can be given to others. A cluster
that is restored from it makes a new key.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(_ context.Context, c *call) error {
				name := c.args[0]
				from, err := os.Open(name)
				if err != nil {
					return fmt.Errorf("error opening snapshot: %w", err)
				}
				defer from.Close()
				err = writeWhole(name, func(f *os.File) error {
					if _, err := io.Copy(f, from); err != nil {
						return err
					}
					return redactArchive(f)
				})
				if err != nil {
					return fmt.Errorf("error redacting %s: %w", name, err)
				}
				c.printf("Snapshot redacted\n")
				return nil
			}
		}}
}

// redactArchive writes an archive anew without the keys.
func redactArchive(f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	store := state.New(state.Config{})
	meta, err := archive.Read(f, store.Restore)
	if err != nil {
		return err
	}
	content, err := os.CreateTemp("", "snapshot-*")
	if err != nil {
		return err
	}
	defer content.Close()
	defer os.Remove(content.Name())
	opts := state.PersistOptions{Keep: func(*structs.RootKey) bool { return false }}
	if err := store.Snapshot().PersistWith(content, opts); err != nil {
		return err
	}
	if meta.Size, err = content.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(0), second(f.Seek(0, io.SeekStart))); err != nil {
		return err
	}
	return archive.Write(f, meta, content)
}

func second(_ int64, err error) error { return err }
