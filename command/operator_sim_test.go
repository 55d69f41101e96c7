package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

var rewriteSim = flag.Bool("rewrite-sim", false, "write the expected outputs of operator sim anew, to be reviewed as a diff")

// runSim runs operator sim with the words of a line.
func runSim(t *testing.T, line string) (int, string) {
	t.Helper()
	s, out, errs := testStreams()
	code := run("nomadlite", append([]string{"operator", "sim"}, strings.Fields(line)...), s)
	return code, out.String() + errs.String()
}

// Each file of testdata/sim/*.txt has blocks of a command line and what it prints, exit codes other than 0 included.
func TestSimScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/sim/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scenarios", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Chdir(folder)
			var is strings.Builder
			for _, line := range strings.Split(string(raw), "\n") {
				args, ok := strings.CutPrefix(line, "$ nomadlite operator sim ")
				if strings.HasPrefix(line, "#") {
					is.WriteString(line + "\n")
				}
				if !ok {
					continue
				}
				code, out := runSim(t, args)
				is.WriteString(line + "\n" + out)
				if code != 0 {
					is.WriteString("exit code " + string(rune('0'+code)) + "\n")
				}
				is.WriteString("\n")
				if _, again := runSim(t, args); again != out {
					t.Errorf("%s gave something else the second time", args)
				}
			}
			if *rewriteSim {
				if err := os.WriteFile(filepath.Base(file), []byte(is.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if is.String() != string(raw) {
				t.Errorf("got\n%s\nwant\n%s", is.String(), raw)
			}
		})
	}
}

// What the documentation shows is what the example gives.
func TestSimAsDocumented(t *testing.T) {
	t.Chdir("..")
	page, err := os.ReadFile("docs/scheduling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "$ nomadlite operator sim ")
	args, shown, _ := strings.Cut(shown, "\n")
	shown, _, _ = strings.Cut(shown, "```")
	if code, out := runSim(t, args); code != 0 || out != shown {
		t.Errorf("exit %d, got\n%s\nthe page has\n%s", code, out, shown)
	}
}

// A snapshot of a server's state is a cluster like any other.
func TestSimOfASnapshot(t *testing.T) {
	s := state.New(state.Config{})
	job := &structs.Job{ID: structs.Ptr("web"), Type: structs.Ptr("service"), Datacenters: []string{"*"}, TaskGroups: []*structs.TaskGroup{{
		Name: structs.Ptr("web"), Count: structs.Ptr(3), Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver",
			Resources: &structs.Resources{CPU: structs.Ptr(1000), MemoryMB: structs.Ptr(100)}}},
	}}}
	job.Canonicalize()
	_, err := s.Write(5, 0, func(tx *state.Txn) (any, error) {
		for _, name := range []string{"a", "b"} {
			n := &structs.Node{ID: name, Name: name, NodeClass: "c", Status: structs.NodeStatusReady, Drivers: map[string]*structs.DriverInfo{
				"mock_driver": {Detected: true, Healthy: true}}, Attributes: map[string]string{"driver.mock_driver": "1"},
				NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 1500}, Memory: structs.NodeMemoryResources{MemoryMB: 1000},
					Disk: structs.NodeDiskResources{DiskMB: 10000}}}
			n.Canonicalize()
			n.ComputeClass()
			if err := tx.RegisterNode(n, 1); err != nil {
				return nil, err
			}
		}
		return tx.RegisterJob(state.JobRegistration{Job: job, Eval: &structs.Evaluation{ID: "e", Namespace: "default", JobID: "web",
			Type: "service", Priority: 50, TriggeredBy: "job-register", Status: "pending"}, Now: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "raft", "snapshots", "1-5-1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "state.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Snapshot().Persist(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"Index":5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	packed := packed(t, filepath.Join(dir, "state.bin"))
	for _, path := range []string{filepath.Join(dir, "state.bin"), filepath.Dir(filepath.Dir(dir)), packed} {
		code, out := runSim(t, "-json -add-nodes c=1 "+path)
		var report simReport
		if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
			t.Fatalf("exit %d: %s", code, out)
		}
		if report.Steps[0].Placed != 2 || report.Steps[0].Unplaced[0].Missing != 1 || report.Steps[1].Placed != 1 || len(report.Unplaced) != 0 ||
			report.After[0].Nodes != 3 {
			t.Errorf("report %s", out)
		}
	}
	if code, out := runSim(t, t.TempDir()); code != 1 || !strings.Contains(out, "there is none below") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// archive packs a file as snapshots are handed around.
func packed(t *testing.T, file string) string {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	w := tar.NewWriter(zip)
	for name, text := range map[string][]byte{"meta.json": []byte("{}"), filepath.Base(file): body} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// More nodes than memory holds are refused before any is made, wherever they are asked for.
func TestSimRefusesMoreNodesThanItHolds(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "cluster.hcl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const one = "node \"c\" {\n  count = 1\n  cpu = 1000\n  memory = 1000\n}\n"
	for _, line := range []string{
		"-add-nodes c=1000000 " + write(one),
		"-add-nodes c=99999999999 " + write(one),
		write(one + "event \"e\" {\n  add_nodes = { c = 99999999999 }\n}\n"),
		write(one + "event \"e\" {\n  add_nodes = { c = -1 }\n}\n"),
	} {
		if code, out := runSim(t, line); code != 1 || !strings.Contains(out, "there are from 0 to 1000000 nodes of a class") {
			t.Errorf("%s: exit %d: %s", line, code, out)
		}
	}
}

func TestSimOfNothingDoesNotClaimThatAllHasItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty.hcl")
	if err := os.WriteFile(file, []byte("node \"small\" {\n  count  = 1\n  cpu    = 1000\n  memory = 1000\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := runSim(t, file); code != 0 || strings.Contains(out, "has its place") || !strings.Contains(out, "nothing to run") {
		t.Errorf("exit %d: %s", code, out)
	}
}
