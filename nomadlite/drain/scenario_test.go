package drain

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
			var out []string
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
				out = append(out, strings.TrimSpace(commands+"\n----\n"+got))
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// world is the state which the commands of a scenario change, and the core that follows it.
type world struct {
	*testing.T
	core   *Drains
	now    time.Time
	nodes  map[string]*structs.Node
	jobs   map[string]*structs.Job
	allocs map[string]*structs.Allocation
	order  []string // of allocs
}

func newWorld(t *testing.T) *world {
	return &world{T: t, core: NewDrains(), now: time.Unix(1e9, 0).UTC(), nodes: map[string]*structs.Node{},
		jobs: map[string]*structs.Job{}, allocs: map[string]*structs.Allocation{}}
}

func (w *world) Node(id string) *structs.Node  { return w.nodes[id] }
func (w *world) Job(_, id string) *structs.Job { return w.jobs[id] }
func (w *world) AllocsByNode(id string) []*structs.Allocation {
	return w.list(func(a *structs.Allocation) bool { return a.NodeID == id })
}
func (w *world) AllocsByJob(_, id string) []*structs.Allocation {
	return w.list(func(a *structs.Allocation) bool { return a.JobID == id })
}

func (w *world) list(keep func(*structs.Allocation) bool) (out []*structs.Allocation) {
	for _, id := range w.order {
		if keep(w.allocs[id]) {
			out = append(out, w.allocs[id])
		}
	}
	return out
}

// args are the key=value words of a command.
type args map[string]string

func (w *world) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

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
	switch words[0] {
	case "job": // ID TYPE count= parallel= stop=
		w.job(names[0], names[1], a)
	case "purge":
		delete(w.jobs, names[0])
	case "alloc": // JOB NODE ID... health= status= stop= migrate= canary=
		for _, id := range names[2:] {
			w.alloc(id, &structs.Allocation{ID: id, Namespace: "default", JobID: names[0], NodeID: names[1], TaskGroup: "g",
				Job: w.jobs[names[0]], DesiredStatus: structs.AllocDesiredStatusRun,
				ClientStatus: structs.AllocClientStatusRunning}, a)
		}
	case "edit":
		for _, id := range names {
			w.alloc(id, w.allocs[id].Copy(), a)
		}
	case "stopped": // what is marked was stopped by a plan
		for _, al := range w.list(func(a *structs.Allocation) bool { return a.DesiredTransition.ShouldMigrate() && !a.TerminalStatus() }) {
			w.alloc(al.ID, al.Copy(), args{"stop": "yes"})
		}
	case "drain": // NODE deadline= ignore-system= no-shutdown-delay= kill-timeout=
		w.drain(names[0], a)
	case "cancel":
		w.node(&structs.Node{ID: names[0]})
	case "gone":
		w.core.RemoveNode(names[0])
		delete(w.nodes, names[0])
	case "retry":
		w.core.Retry(names[0], w.now.Add(w.duration(a["in"])))
	case "restart": // another leader
		w.core = NewDrains()
		for _, n := range w.nodes {
			w.core.Node(n)
		}
	case "tick":
		w.now = w.now.Add(w.duration(names[0]))
	case "due":
		limit, _ := strconv.Atoi(a["limit"])
		return w.due(limit, a["lost"] != "")
	default:
		w.Fatalf("unknown command %q", words[0])
	}
	return nil
}

func (w *world) job(id, kind string, a args) {
	count, _ := strconv.Atoi(a["count"])
	g := &structs.TaskGroup{Name: structs.Ptr("g"), Count: &count}
	if n, err := strconv.Atoi(a["parallel"]); err == nil {
		g.Migrate = &structs.MigrateStrategy{MaxParallel: &n}
	}
	w.jobs[id] = &structs.Job{ID: &id, Namespace: structs.Ptr("default"), Type: &kind, Stop: a["stop"] != "",
		TaskGroups: []*structs.TaskGroup{g}}
}

func (w *world) alloc(id string, al *structs.Allocation, a args) {
	if s := a["status"]; s != "" {
		al.ClientStatus = s
	}
	if a["stop"] != "" {
		al.DesiredStatus = structs.AllocDesiredStatusStop
	}
	if a["migrate"] != "" {
		al.DesiredTransition.Migrate = structs.Ptr(true)
	}
	if h := a["health"]; h != "" {
		al.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(h == "good"), Canary: a["canary"] != ""}
	}
	if w.allocs[id] == nil {
		w.order = append(w.order, id)
	}
	w.allocs[id] = al
	w.core.Alloc(al)
}

func (w *world) drain(id string, a args) {
	s := &structs.DrainStrategy{DrainSpec: structs.DrainSpec{IgnoreSystemJobs: a["ignore-system"] != "",
		NoShutdownDelay: a["no-shutdown-delay"] != ""}}
	if text := a["deadline"]; text != "" {
		if s.Deadline = w.duration(text); s.Deadline > 0 {
			s.ForceDeadline = w.now.Add(s.Deadline)
		}
	}
	if text := a["kill-timeout"]; text != "" {
		s.KillTimeout = structs.Ptr(w.duration(text))
	}
	w.node(&structs.Node{ID: id, DrainStrategy: s})
}

func (w *world) node(n *structs.Node) {
	w.nodes[n.ID] = n
	w.core.Node(n)
}

// due carries out what is due, unless it is lost on its way, and asks again whether that changes anything more.
func (w *world) due(limit int, lost bool) []string {
	if limit == 0 {
		limit = 100
	}
	round := w.core.Due(w.now, w, limit)
	var out []string
	for _, id := range slices.Sorted(maps.Keys(round.Marks)) {
		out = append(out, "mark "+id+options(round.Marks[id]))
	}
	for _, c := range round.Jobs {
		out = append(out, fmt.Sprintf("evaluate %s for %s", *c.Job.ID, c.Node.ID))
	}
	for _, n := range round.Over {
		out = append(out, "over: "+n.ID)
	}
	if !lost {
		w.carryOut(round)
	}
	switch next, ok := w.core.Next(); {
	case ok && next.After(w.now):
		out = append(out, fmt.Sprintf("next in %s", next.Sub(w.now)))
	case ok:
		out = append(out, "next at once")
	}
	return out
}

func options(t *structs.DesiredTransition) string {
	out := ""
	if !t.ShouldMigrate() {
		out += " (stops already)"
	}
	if structs.Val(t.MigrateDisablePlacement) {
		out += " for good"
	}
	if structs.Val(t.NoShutdownDelay) {
		out += " no_shutdown_delay"
	}
	if t.KillTimeout != nil {
		out += " kill_timeout=" + t.KillTimeout.String()
	}
	return out
}

func (w *world) carryOut(round *Round) {
	for id, t := range round.Marks {
		al := w.allocs[id].Copy()
		al.DesiredTransition.Merge(t)
		w.allocs[id] = al
	}
	for _, n := range round.Over {
		w.node(&structs.Node{ID: n.ID})
	}
	// What was done is not due again, whoever looks: here a leader that knows nothing but the state.
	fresh := NewDrains()
	for _, n := range w.nodes {
		fresh.Node(n)
	}
	again := fresh.Due(w.now, w, 1000)
	for id := range round.Marks {
		if again.Marks[id] != nil {
			w.Errorf("%s is marked twice", id)
		}
		w.core.Alloc(w.allocs[id])
	}
}
