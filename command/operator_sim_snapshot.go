package command

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/archive"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/scheduler/sim"
	"github.com/nomadlite/nomadlite/structs"
)

// maxSimFile bounds the description of a cluster.
const maxSimFile = 64 << 20

// openSim opens a described or a recorded cluster. Its events are made by prepare, when the variables are known.
func openSim(name string, seed uint64) (*preparedSim, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("open cluster: %w", err)
	}
	if info.IsDir() {
		if name, err = newestSnapshot(name); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open cluster: %w", err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	head, _ := r.Peek(64)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return archivedSim(name, f, seed)
	case bytes.Contains(head, []byte("nomadlite-state")):
		return recordedSim(name, r, seed)
	}
	body, err := io.ReadAll(io.LimitReader(r, maxSimFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read cluster: %w", err)
	case len(body) > maxSimFile:
		return nil, fmt.Errorf("read cluster: %s is larger than %d MiB and no snapshot", name, maxSimFile>>20)
	}
	return describedSim(name, body, seed)
}

// newestSnapshot finds the newest raft snapshot below a folder, such as a server's data_dir.
func newestSnapshot(dir string) (string, error) {
	var found string
	var newest uint64
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != "meta.json" {
			return err
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var meta struct{ Index uint64 }
		bin := filepath.Join(filepath.Dir(file), "state.bin")
		if _, missing := os.Stat(bin); json.Unmarshal(raw, &meta) == nil && missing == nil &&
			!strings.HasSuffix(filepath.Dir(file), ".tmp") && (found == "" || meta.Index > newest) {
			found, newest = bin, meta.Index
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("find snapshot: %w", err)
	}
	if found == "" {
		return "", fmt.Errorf("find snapshot: there is none below %s (servers take one every raft_snapshot_threshold entries)", dir)
	}
	return found, nil
}

// archivedSim finds the state in an archive, which has to be whole. One with checksums was written by operator snapshot
// save; without them it is a raft snapshot that somebody packed.
func archivedSim(name string, f io.ReadSeeker, seed uint64) (sim *preparedSim, err error) {
	var names []string
	err = eachEntry(f, func(entry *tar.Header, _ io.Reader) error {
		names = append(names, path.Base(entry.Name))
		return nil
	})
	switch {
	case err != nil:
	case slices.Contains(names, "SHA256SUMS"):
		return savedSim(name, f, seed)
	case !slices.Contains(names, "state.bin"):
		err = errors.New("it holds no state.bin")
	default:
		err = eachEntry(f, func(entry *tar.Header, content io.Reader) (err error) {
			if path.Base(entry.Name) == "state.bin" {
				sim, err = recordedSim(name, content, seed)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	return sim, nil
}

// eachEntry reads a gzipped tar from its beginning to its end.
func eachEntry(f io.ReadSeeker, look func(entry *tar.Header, content io.Reader) error) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	unzip, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	in := tar.NewReader(unzip)
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, unzip)
			return err
		}
		if err == nil {
			err = look(entry, in)
		}
		if err != nil {
			return err
		}
	}
}

func savedSim(name string, f io.ReadSeeker, seed uint64) (sim *preparedSim, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	_, err = archive.Read(f, func(r io.Reader) (err error) {
		sim, err = recordedSim(name, r, seed)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	return sim, nil
}

// recordedSim reads the state of a cluster.
func recordedSim(name string, r io.Reader, seed uint64) (*preparedSim, error) {
	store := state.New(state.Config{})
	if err := store.Restore(r); err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	snap := store.Snapshot()
	cfg := sim.Config{Seed: seed, Now: newestTime(snap), Scheduler: snap.SchedulerConfig(nil),
		Pools: slices.Collect(snap.NodePools(nil))}
	w := &simWorld{sim: sim.New(cfg), added: map[string]int{}}
	const all = structs.AllNamespaces
	w.sim.Load(sim.Recorded{Nodes: snap.Nodes(nil), Jobs: snap.Jobs(nil, all), Allocs: snap.Allocs(nil, all), Evals: snap.Evals(nil, all),
		Deployments: snap.Deployments(nil, all), Index: snap.Index()})
	w.makeNodes = func(class string, n int) ([]*structs.Node, error) { return moreNodes(w, class, n) }
	return &preparedSim{simWorld: w, prepare: func(w *simWorld) error {
		w.events = []sim.Event{{Name: fmt.Sprintf("as recorded at index %d", snap.Index())}}
		return nil
	}}, nil
}

// newestTime is when the snapshot was taken, as far as its allocations tell.
func newestTime(snap *state.Snapshot) time.Time {
	newest := simStart().UnixNano()
	first := true
	for a := range snap.Allocs(nil, structs.AllNamespaces) {
		if first || a.ModifyTime > newest {
			newest, first = a.ModifyTime, false
		}
	}
	return time.Unix(0, newest).UTC()
}

// moreNodes makes nodes like those of a class that are there.
func moreNodes(w *simWorld, class string, n int) ([]*structs.Node, error) {
	var like *structs.Node
	classes := map[string]bool{}
	for node := range w.sim.Nodes() {
		of := cmp.Or(node.NodeClass, sim.NoClass)
		classes[of] = true
		if of == class && (like == nil || !like.Ready()) {
			like = node
		}
	}
	if like == nil {
		return nil, structs.Errorf(structs.CodeInvalid, "there is no node of class %q to be copied, only of: %s", class,
			strings.Join(slices.Sorted(maps.Keys(classes)), ", "))
	}
	out := make([]*structs.Node, n)
	for i := range out {
		node := like.Copy()
		node.Name = fmt.Sprintf("%s-added-%d", cmp.Or(node.NodeClass, "node"), w.added[class]+i)
		node.ID, node.CreateIndex = node.Name, 0
		node.Status, node.SchedulingEligibility = structs.NodeStatusReady, structs.NodeEligible
		node.DrainStrategy, node.Drain, node.Maintenance = nil, false, nil
		maps.DeleteFunc(node.Attributes, func(name, _ string) bool { return strings.HasPrefix(name, "unique.") })
		maps.DeleteFunc(node.Meta, func(name, _ string) bool { return strings.HasPrefix(name, "unique.") })
		node.Attributes["unique.hostname"] = node.Name
		out[i] = node
	}
	return out, nil
}
