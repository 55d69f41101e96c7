package broker

import (
	"flag"
	"fmt"
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

// TestScenarios runs testdata/*.txt: each block is commands, a line of dashes, and the trace they must leave.
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
			w := &world{queue: NewQueue(Config{}), blocked: NewBlocked(0), now: time.Unix(0, 0)}
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

// world is what the commands of a scenario act on.
type world struct {
	queue   *Queue
	blocked *Blocked
	now     time.Time
	created uint64
}

func (w *world) run(words []string) []string {
	args := map[string]string{}
	var names []string
	for _, word := range words[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			args[k] = v
		} else {
			names = append(names, word)
		}
	}
	num := func(key string) int { n, _ := strconv.Atoi(args[key]); return n }
	fail := func(err error) []string {
		if err != nil {
			return []string{"error: " + err.Error()}
		}
		return nil
	}
	switch words[0] {
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
		d, err := time.ParseDuration(names[0])
		if err != nil {
			return fail(err)
		}
		w.now = w.now.Add(d)
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
		wake, superseded := w.blocked.Block(w.eval(names[0], args))
		out := []string{fmt.Sprintf("wake=%v", wake)}
		if superseded != nil {
			out = append(out, "superseded "+superseded.ID)
		}
		return out
	case "room":
		return ids(w.blocked.Room(args["node"], args["class"], uint64(num("index"))))
	case "wakeall":
		return ids(w.blocked.WakeAll(uint64(num("index"))))
	case "settled":
		return ids(w.blocked.Settled(w.eval(names[0], args)))
	case "unblock-remove":
		w.blocked.Remove(names[0])
	case "floor":
		w.blocked = NewBlocked(uint64(num("index")))
	case "blocked":
		total, escaped := w.blocked.Len()
		return []string{fmt.Sprintf("total=%d escaped=%d", total, escaped)}
	default:
		return []string{"unknown command " + words[0]}
	}
	return nil
}

func ids(evals []*structs.Evaluation) []string {
	out := []string{"wakes"}
	for _, e := range evals {
		out[0] += " " + e.ID
	}
	return out
}

// eval makes an evaluation from the arguments of a command; create indexes count up.
func (w *world) eval(id string, args map[string]string) *structs.Evaluation {
	w.created++
	e := &structs.Evaluation{ID: id, Namespace: "default", JobID: args["job"], Type: "service", Priority: 50,
		NodeID: args["node"], CreateIndex: w.created, ClassEligibility: map[string]bool{}}
	if v, ok := args["type"]; ok {
		e.Type = v
	}
	if v, err := strconv.Atoi(args["priority"]); err == nil {
		e.Priority = v
	}
	if v, err := strconv.Atoi(args["create"]); err == nil {
		e.CreateIndex = uint64(v)
	}
	if v, err := strconv.Atoi(args["modify"]); err == nil {
		e.ModifyIndex = uint64(v)
	}
	if v, err := strconv.Atoi(args["snapshot"]); err == nil {
		e.SnapshotIndex = uint64(v)
	}
	if d, err := time.ParseDuration(args["wait"]); err == nil {
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
