package deploy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected traces in testdata")

// TestScenarios runs testdata/*.txt: each block is commands, a line of dashes, and the trace they must leave. The commands
// of a file act on one core.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			var out strings.Builder
			for i, block := range strings.Split(strings.TrimSpace(string(raw)), "\n\n") {
				commands, want, _ := strings.Cut(block, "\n----")
				want = strings.TrimSpace(want)
				var trace []string
				for line := range strings.SplitSeq(commands, "\n") {
					if !strings.HasPrefix(line, "#") {
						trace = append(trace, w.run(strings.Fields(line))...)
					}
				}
				got := strings.Join(trace, "\n")
				if got != want && !*rewrite {
					t.Errorf("block %d:\n%s\ngot:\n%s\nwant:\n%s", i+1, commands, got, want)
				}
				if i > 0 {
					out.WriteString("\n")
				}
				fmt.Fprintf(&out, "%s\n----\n%s\n", commands, got)
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// world is what the commands of a scenario act on. Time begins at 0 and index at 10.
type world struct {
	*testing.T
	core        *Rollouts
	now         time.Time
	index       uint64
	ids         int
	deployments map[string]*structs.Deployment
	allocs      map[string]*structs.Allocation
	last        map[string]Action // by deployment
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, now: time.Unix(0, 0).UTC(), index: 10, deployments: map[string]*structs.Deployment{},
		allocs: map[string]*structs.Allocation{}, last: map[string]Action{}}
	w.core = NewRollouts(func() string { w.ids++; return fmt.Sprint("e", w.ids) })
	return w
}

// args are the key=value words of a command.
type args map[string]string

func (a args) num(key string) int { n, _ := strconv.Atoi(a[key]); return n }

func (a args) duration(key string) time.Duration { d, _ := time.ParseDuration(a[key]); return d }

func (w *world) run(words []string) []string {
	w.Helper()
	a := args{}
	var names []string
	for _, word := range words[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			a[k] = v
		} else {
			names = append(names, word)
		}
	}
	switch w.index++; words[0] {
	case "deployment":
		w.deployment(names[0], a)
	case "status":
		w.edit(names[0], func(d *structs.Deployment) { d.Status = names[1] })
	case "promote":
		w.edit(names[0], func(d *structs.Deployment) {
			g := d.TaskGroups["g"] // its deadline begins anew
			g.Promoted, g.RequireProgressBy = true, w.now.Add(g.ProgressDeadline)
		})
	case "alloc":
		for _, id := range names[1:] {
			w.alloc(names[0], id, a)
		}
	case "gone":
		w.core.Alloc(w.allocs[names[0]], nil)
	case "evaluated":
		w.core.EvalEnded(names[0], w.seen(a))
	case "under-way":
		w.core.EvalStarted(names[0], names[1], uint64(a.num("index")))
	case "retry":
		w.core.Retry(w.last[names[0]], w.now.Add(a.duration("in")))
	case "spare":
		w.core.Spare(w.now.Add(a.duration("for")))
	case "seen":
		w.core.Seen(names[0], uint64(a.num("index")))
	case "tick":
		d, err := time.ParseDuration(names[0])
		if err != nil {
			w.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "due":
		return w.due()
	default:
		w.Fatalf("unknown command %q", words[0])
	}
	return nil
}

// seen is the index of a state: seen=alloc is the one that has that allocation's report, before=alloc the one before it.
func (w *world) seen(a args) uint64 {
	if id := a["seen"]; id != "" {
		return w.allocs[id].DeploymentStatus.ModifyIndex
	}
	if id := a["before"]; id != "" {
		return w.allocs[id].DeploymentStatus.ModifyIndex - 1
	}
	return 0
}

// deployment stores a deployment with one group g: desired, deadline, canaries, revert. Its first deadline counts from now.
func (w *world) deployment(id string, a args) {
	g := &structs.DeploymentState{DesiredTotal: a.num("desired"), ProgressDeadline: a.duration("deadline"),
		DesiredCanaries: a.num("canaries"), AutoRevert: a["revert"] != ""}
	if g.ProgressDeadline > 0 {
		g.RequireProgressBy = w.now.Add(g.ProgressDeadline)
	}
	d := &structs.Deployment{ID: id, JobID: "job-" + id, Status: structs.DeploymentStatusRunning,
		TaskGroups: map[string]*structs.DeploymentState{"g": g}}
	w.deployments[id] = d
	w.core.Deployment(d)
}

func (w *world) edit(id string, how func(*structs.Deployment)) {
	d := w.deployments[id].Copy()
	how(d)
	w.deployments[id] = d
	w.core.Deployment(d)
}

// alloc stores an allocation of a deployment's group g as the state would, counts included: health=healthy|unhealthy,
// ended=yes.
func (w *world) alloc(deployment, id string, a args) {
	before := w.allocs[id]
	after := &structs.Allocation{ID: id, TaskGroup: "g", DesiredStatus: structs.AllocDesiredStatusRun,
		ClientStatus: structs.AllocClientStatusRunning}
	if before != nil {
		after = before.Copy()
	}
	if after.DeploymentID != deployment {
		after.DeploymentID, after.DeploymentStatus = deployment, nil
	}
	after.ModifyTime = w.now.UnixNano()
	if a["ended"] != "" {
		after.ClientStatus = structs.AllocClientStatusFailed
	}
	if h := a["health"]; h != "" {
		after.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(h == "healthy"), ModifyIndex: w.index}
		w.edit(deployment, func(d *structs.Deployment) {
			g := d.TaskGroups["g"]
			if h != "healthy" {
				g.UnhealthyAllocs++
				return
			}
			g.HealthyAllocs++
			if g.ProgressDeadline > 0 {
				g.RequireProgressBy = w.now.Add(g.ProgressDeadline)
			}
		})
	}
	w.allocs[id] = after
	w.core.Alloc(before, after)
}

func (w *world) due() []string {
	var out []string
	for _, a := range w.core.Due(w.now, 10) {
		w.last[a.Deployment.ID] = a
		line := fmt.Sprintf("%s: evaluate as %s", a.Deployment.ID, a.EvalID)
		if a.Fail != "" {
			line = fmt.Sprintf("%s: %s, evaluate as %s", a.Deployment.ID, a.Fail, a.EvalID)
		}
		if a.AutoRevert {
			line += ", revert"
		}
		out = append(out, line)
	}
	switch next, ok := w.core.Next(); {
	case ok:
		out = append(out, fmt.Sprintf("next in %s", next.Sub(w.now)))
	default:
		out = append(out, "nothing next")
	}
	return out
}
