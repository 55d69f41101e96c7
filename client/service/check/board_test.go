package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// world answers questions and notes what the board asks of others.
type world struct {
	*Board
	t     *testing.T
	begin time.Time

	mu    sync.Mutex
	fails map[string]bool // by the check's name
	hangs bool
	asked []string
	told  []string
	saved map[string][]structs.AllocCheckStatus
}

func (w *world) Probe(ctx context.Context, allocID string, s *Spec) Outcome {
	w.mu.Lock()
	w.asked = append(w.asked, fmt.Sprint(allocID, "/", s.ID, "@", time.Since(w.begin)))
	hangs, fails := w.hangs, w.fails[s.ID]
	w.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return failed(ctx.Err())
	}
	if fails {
		return Outcome{Verdict: Failed, Output: "bad", Code: 500}
	}
	return Outcome{Output: "good", Code: 200}
}

func (w *world) Restart(allocID, task, reason string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprint(allocID, "/", task, ": ", reason, " @", time.Since(w.begin)))
	return nil
}

func (w *world) SaveChecks(allocID string, list []structs.AllocCheckStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved[allocID] = list
}

func (w *world) changed(string) {}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// take gives what was noted since the last call.
func (w *world) take(list *[]string) string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(*list, "\n")
	*list = nil
	return out
}

func (w *world) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

func (w *world) status(allocID string) string {
	synctest.Wait()
	var out []string
	for id, s := range w.Statuses(allocID) {
		out = append(out, id+"="+s.Status)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// inBubble runs a board with virtual time, in which each check is first asked in the middle of its time for that.
func inBubble(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, begin: time.Now(), fails: map[string]bool{}, saved: map[string][]structs.AllocCheckStatus{}}
		w.Board = New(Config{Prober: w, Restarter: w, Store: w, Changed: w.changed, Random: func() float64 { return 0.5 }})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		test(w)
		cancel()
		running.Wait()
	})
}

func spec(id, on string) Spec {
	return Spec{ID: id, On: on, Task: on, Service: "web", Check: structs.ServiceCheck{Name: id, Type: structs.CheckTCP, Interval: 10 * time.Second, Timeout: 2 * time.Second}}
}

func TestChecksAreAskedWhileTheirTaskRuns(t *testing.T) {
	inBubble(t, func(w *world) {
		w.Offer("a1", "", []Spec{spec("all", "")})
		w.Offer("a1", "web", []Spec{spec("own", "web")})
		time.Sleep(time.Minute)
		w.want("asked of nothing", w.take(&w.asked), "")
		w.want("status", w.status("a1"), "all=pending own=pending")
		w.TaskUp("a1", "side", false, true)
		time.Sleep(time.Minute)
		w.want("asked of a sidecar", w.take(&w.asked), "")
		w.set(func() { w.begin = time.Now() })
		w.TaskUp("a1", "web", true, true)
		time.Sleep(11 * time.Second)
		got := strings.Split(w.take(&w.asked), "\n")
		slices.Sort(got)
		w.want("asked", strings.Join(got, "\n"), "a1/all@10.5s\na1/all@500ms\na1/own@10.5s\na1/own@500ms")
		w.want("status", w.status("a1"), "all=success own=success")
		w.TaskDown("a1", "web")
		time.Sleep(time.Minute)
		w.want("asked of a task that is down", w.take(&w.asked), "")
		w.want("status of a task that is down", w.status("a1"), "all=success own=success")
		if s := w.Standings("a1"); len(s) != 0 {
			t.Errorf("a check that is not asked counts: %v", s)
		}
		w.TaskUp("a1", "web", true, true)
		w.want("status of a new process", w.status("a1"), "all=pending own=pending")
		time.Sleep(time.Second)
		w.take(&w.asked)
		w.Withdraw("a1", "")
		time.Sleep(10 * time.Second)
		if got := w.take(&w.asked); strings.Contains(got, "all") || !strings.Contains(got, "own") {
			t.Errorf("after the group's services left were asked %s", got)
		}
		w.Drop("a1")
		time.Sleep(time.Minute)
		w.want("asked of nobody", w.take(&w.asked), "")
		w.want("status of nobody", w.status("a1"), "")
		if len(w.saved["a1"]) != 0 || len(w.queue) != 0 {
			t.Errorf("left over are %v and %d", w.saved["a1"], len(w.queue))
		}
	})
}

func TestAStopEndsAQuestionAtOnceAndItsAnswerCountsForNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		s := spec("c", "web")
		s.Check.CheckRestart = &structs.CheckRestart{Limit: 1}
		w.set(func() { w.hangs = true })
		w.Offer("a1", "web", []Spec{s})
		w.TaskUp("a1", "web", true, true)
		time.Sleep(time.Second)
		w.take(&w.asked)
		begin := time.Now()
		w.TaskDown("a1", "web")
		w.Board.asking.Wait()
		if d := time.Since(begin); d != 0 {
			t.Errorf("the question ended after %s", d)
		}
		w.want("status", w.status("a1"), "c=pending")
		w.want("restarts", w.take(&w.told), "")
	})
}

func TestAHangingCheckFailsAfterItsTimeoutAndIsAskedByItsInterval(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set(func() { w.hangs = true })
		w.Offer("a1", "web", []Spec{spec("c", "web")})
		w.TaskUp("a1", "web", true, true)
		time.Sleep(2400 * time.Millisecond)
		w.want("status before", w.status("a1"), "c=pending")
		time.Sleep(100 * time.Millisecond)
		w.want("status", w.status("a1"), "c=failure")
		time.Sleep(10 * time.Second)
		w.want("asked", w.take(&w.asked), "a1/c@500ms\na1/c@10.5s")
		w.set(func() { w.hangs = false })
		slow := spec("slow", "web")
		slow.Check.Interval, slow.Check.Timeout = time.Second, 5*time.Second
		w.set(func() { w.hangs = true })
		w.set(func() { w.begin = time.Now() })
		w.Offer("a1", "web", []Spec{slow})
		time.Sleep(11 * time.Second)
		w.want("one at a time", w.take(&w.asked), "a1/slow@50ms\na1/slow@5.05s\na1/slow@10.05s")
	})
}

func TestCheckRestartKeepsToLimitAndGrace(t *testing.T) {
	inBubble(t, func(w *world) {
		s := spec("c", "web")
		s.Check.CheckRestart = &structs.CheckRestart{Limit: 2, Grace: structs.Ptr(25 * time.Second)}
		w.set(func() { w.fails["c"] = true })
		w.Offer("a1", "web", []Spec{s})
		w.TaskUp("a1", "web", true, true)
		time.Sleep(45 * time.Second) // failures at 0.5, 10.5 and 20.5 s are within grace
		w.want("restarts", w.take(&w.told), `a1/web: healthcheck: check "c" unhealthy @40.5s`)
		w.TaskDown("a1", "web")
		w.set(func() { w.begin = time.Now() })
		w.TaskUp("a1", "web", true, true)
		time.Sleep(45 * time.Second)
		w.want("restarts of the next process", w.take(&w.told), `a1/web: healthcheck: check "c" unhealthy @40.5s`)
	})
}

func TestARestartedAgentGoesOnWithWhatWasKnown(t *testing.T) {
	var saved []structs.AllocCheckStatus
	s := spec("c", "web")
	s.Check.CheckRestart = &structs.CheckRestart{Limit: 1, Grace: structs.Ptr(time.Second)}
	inBubble(t, func(w *world) {
		w.Offer("a1", "web", []Spec{s})
		w.TaskUp("a1", "web", true, true)
		time.Sleep(time.Second)
		w.want("status", w.status("a1"), "c=success")
		w.set(func() { saved = w.saved["a1"] })
		w.set(func() { w.hangs = true })
		time.Sleep(10 * time.Second) // the agent ends while it asks
	})
	inBubble(t, func(w *world) {
		w.Restore("a1", saved)
		w.want("status at once", w.status("a1"), "c=success")
		w.TaskUp("a1", "web", true, false)
		w.Offer("a1", "web", []Spec{s})
		w.want("status", w.status("a1"), "c=success")
		if got := w.Standings("a1")["c"]; got.Passing.IsZero() {
			t.Errorf("standing %+v", got)
		}
		time.Sleep(4900 * time.Millisecond)
		w.want("asked too early", w.take(&w.asked), "")
		time.Sleep(100 * time.Millisecond)
		w.want("asked", w.take(&w.asked), "a1/c@5s")
		w.want("restarts", w.take(&w.told), "")
	})
	inBubble(t, func(w *world) { // the process is another one
		w.Restore("a1", saved)
		w.TaskUp("a1", "web", true, true)
		w.Offer("a1", "web", []Spec{s})
		w.want("status of a new process", w.status("a1"), "c=pending")
	})
}

func TestAnUpdateKeepsWhatIsTheSame(t *testing.T) {
	inBubble(t, func(w *world) {
		w.TaskUp("a1", "web", true, true)
		w.Offer("a1", "web", []Spec{spec("old", "web"), spec("same", "web")})
		time.Sleep(time.Second)
		w.want("status", w.status("a1"), "old=success same=success")
		w.set(func() { w.fails["new"] = true })
		w.Offer("a1", "web", []Spec{spec("same", "web"), spec("new", "web")})
		w.want("status after the update", w.status("a1"), "new=pending same=success")
		time.Sleep(time.Second)
		w.want("status later", w.status("a1"), "new=failure same=success")
		for id, ok := range map[string]bool{"same": true, "new": false} {
			if got := w.Standings("a1")[id]; got.Passing.IsZero() == ok {
				t.Errorf("%s stands %+v", id, got)
			}
		}
	})
}

func TestManyChecksAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, begin: time.Now(), saved: map[string][]structs.AllocCheckStatus{}}
		n := 0
		w.Board = New(Config{Prober: w, Restarter: w, Store: w, Changed: w.changed, Random: func() float64 {
			n++
			return float64(n%500) / 500
		}})
		for i := range 500 {
			id := fmt.Sprint("a", i)
			s := spec("c", "web")
			w.Restore(id, []structs.AllocCheckStatus{{ID: "c", Status: structs.CheckSuccess}})
			w.Offer(id, "web", []Spec{s})
			w.TaskUp(id, "web", true, false)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		for range 10 {
			w.take(&w.asked)
			time.Sleep(time.Second)
			if got := strings.Count(w.take(&w.asked), "@"); got < 45 || got > 55 {
				t.Errorf("%d questions in a second", got)
			}
		}
		cancel()
		running.Wait()
	})
}
