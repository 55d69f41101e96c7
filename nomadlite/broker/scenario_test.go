package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/scenariotest"
	"github.com/nomadlite/nomadlite/structs"
)

func TestScenarios(t *testing.T) {
	scenariotest.Play(t, func(t *testing.T) func(scenariotest.Command) []string {
		return (&world{T: t, queue: NewQueue(Config{}), blocked: NewBlocked(0), now: time.Unix(0, 0), free: memory{}}).run
	})
}

// world is what the commands of a scenario act on.
type world struct {
	*testing.T
	queue   *Queue
	blocked *Blocked
	now     time.Time
	created uint64
	free    memory
}

// memory is what is free on each node, in MB.
type memory map[string]int64

func (m memory) Free(nodeID string) (Size, bool) {
	free, ok := m[nodeID]
	return Size{MemoryMB: free}, ok
}

func (w *world) run(c scenariotest.Command) []string {
	names, args := c.Words, c.Args
	num := func(key string) int { return args.Number(w.T, key) }
	fail := func(err error) []string {
		if err != nil {
			return []string{"error: " + err.Error()}
		}
		return nil
	}
	switch c.Name {
	case "enqueue":
		w.queue.Enqueue(w.now, w.eval(names[0], args), slices.Contains(names, "background"))
	case "requeue":
		w.queue.Requeue(w.now, w.eval(names[0], args))
	case "dequeue":
		eval := w.queue.Dequeue(w.now, strings.Split(names[0], ","), args["token"])
		if eval == nil {
			return []string{"nothing"}
		}
		return []string{eval.ID}
	case "ack":
		return fail(w.queue.Ack(w.now, names[0], args["token"]))
	case "nack":
		return fail(w.queue.Nack(w.now, names[0], args["token"]))
	case "renew":
		return fail(w.queue.Renew(w.now, names[0], args["token"]))
	case "remove":
		w.queue.Remove(names[0])
	case "tick":
		w.now = w.now.Add(scenariotest.Duration(w.T, names[0]))
		w.queue.Tick(w.now)
		if next, ok := w.queue.Next(); ok {
			return []string{"next in " + next.Sub(w.now).String()}
		}
		return []string{"idle"}
	case "stats":
		s := w.queue.Stats()
		return []string{fmt.Sprintf("ready=%d behind=%d delayed=%d flight=%d failed=%d",
			s.Ready, s.Behind, s.Delayed, s.InFlight, s.Failed)}
	case "block":
		wake, superseded := w.blocked.Block(w.eval(names[0], args), w.asks(args))
		out := []string{fmt.Sprintf("wake=%v", wake)}
		if superseded != nil {
			out = append(out, "superseded "+superseded.ID)
		}
		return out
	case "room":
		if args["free"] != "" {
			w.free[args["node"]] = int64(num("free"))
		}
		return ids(append(w.blocked.Room(args["node"], args["class"], uint64(num("index"))), w.blocked.Wake(w.free)...))
	case "jobroom":
		return ids(w.blocked.JobRoom(structs.NamespacedID{Namespace: "default", ID: args["job"]}, uint64(num("index"))))
	case "wakeall":
		return ids(append(w.blocked.WakeAll(uint64(num("index"))), w.blocked.Wake(w.free)...))
	case "done":
		if args["free"] != "" {
			w.free[args["node"]] = int64(num("free"))
		}
		for _, id := range names {
			w.blocked.Done(id)
		}
		return ids(w.blocked.Wake(w.free))
	case "settled":
		return ids(w.blocked.Settled(w.eval(names[0], args)))
	case "unblock-remove":
		w.blocked.Remove(names[0])
	case "floor":
		w.blocked, w.free = NewBlocked(uint64(num("index"))), memory{}
	case "blocked":
		total, escaped := w.blocked.Len()
		return []string{fmt.Sprintf("total=%d escaped=%d", total, escaped)}
	default:
		w.Fatalf("unknown command %q", c.Line)
	}
	return nil
}

// asks is what an evaluation waits for: count times ask MB.
func (w *world) asks(args scenariotest.Args) []Ask {
	if args["ask"] == "" {
		return nil
	}
	return []Ask{{Size: Size{MemoryMB: int64(args.Number(w.T, "ask"))}, Count: int64(max(1, args.Number(w.T, "count")))}}
}

func ids(evals []*structs.Evaluation) []string {
	out := []string{"wakes"}
	for _, e := range evals {
		out[0] += " " + e.ID
	}
	return out
}

// eval makes an evaluation from the arguments of a command; create indexes count up.
func (w *world) eval(id string, args scenariotest.Args) *structs.Evaluation {
	w.created++
	e := &structs.Evaluation{ID: id, Namespace: "default", JobID: args["job"], Type: "service", Priority: 50,
		NodeID: args["node"], CreateIndex: w.created, ClassEligibility: map[string]bool{}}
	if v, ok := args["type"]; ok {
		e.Type = v
	}
	if v := args.Number(w.T, "priority"); v != 0 {
		e.Priority = v
	}
	if v := args.Number(w.T, "create"); v != 0 {
		e.CreateIndex = uint64(v)
	}
	if v := args.Number(w.T, "modify"); v != 0 {
		e.ModifyIndex = uint64(v)
	}
	if v := args.Number(w.T, "snapshot"); v != 0 {
		e.SnapshotIndex = uint64(v)
	}
	if d := args.Duration(w.T, "wait"); d != 0 {
		e.WaitUntil = w.now.Add(d)
	}
	for class := range strings.SplitSeq(args["yes"], ",") {
		if class != "" {
			e.ClassEligibility[class] = true
		}
	}
	for class := range strings.SplitSeq(args["no"], ",") {
		if class != "" {
			e.ClassEligibility[class] = false
		}
	}
	e.EscapedComputedClass = args["escaped"] == "true"
	return e
}
