package endpoint

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/stats"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// decode reads a JSON body; an empty one leaves v as it is.
func decode(r *route.Request, v any) error {
	if r.Body == nil {
		return nil
	}
	if err := json.NewDecoder(r.Body).Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return structs.Errorf(structs.CodeInvalid, "cannot read request: %w", err)
	}
	return nil
}

func (e *endpoint) allocStats(w http.ResponseWriter, r *route.Request) error {
	alloc, err := e.Alloc(r.Param("alloc_id"))
	if err != nil {
		return err
	}
	tasks, err := alloc.Stats(r.Context(), r.URL.Query().Get("task"))
	if err != nil {
		return err
	}
	return answer(w, r, stats.Sum(tasks, time.Now().UnixNano()))
}

func (e *endpoint) allocChecks(w http.ResponseWriter, r *route.Request) error {
	alloc, err := e.Alloc(r.Param("alloc_id"))
	if err != nil {
		return err
	}
	return answer(w, r, alloc.Checks())
}

func (e *endpoint) restart(w http.ResponseWriter, r *route.Request) error {
	var req structs.AllocationRestartRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	terms, err := termsOf(r)
	if err != nil {
		return err
	}
	if req.AllTasks && req.TaskName != "" {
		return structs.Errorf(structs.CodeInvalid, "cannot restart all tasks and a single one: set either AllTasks or TaskName")
	}
	alloc, err := e.Alloc(r.Param("alloc_id"))
	if err != nil {
		return err
	}
	switch {
	case req.AllTasks:
		err = alloc.RestartAll(terms)
	case req.TaskName != "":
		err = alloc.RestartTask(req.TaskName, terms)
	default:
		err = alloc.RestartRunning(terms)
	}
	if err != nil {
		return err
	}
	return answer(w, r, struct{}{})
}

// termsOf reads no_shutdown_delay and kill_timeout, which hold for this restart alone.
func termsOf(r *route.Request) (allocrunner.Terms, error) {
	var t allocrunner.Terms
	var err error
	if t.NoShutdownDelay, err = flag(r, "no_shutdown_delay", false); err != nil {
		return t, err
	}
	if q := r.URL.Query(); q.Has("kill_timeout") {
		text := q.Get("kill_timeout")
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return t, structs.Errorf(structs.CodeInvalid, "error parsing kill_timeout: %q is not a duration", text)
		}
		t.KillTimeout = &d
	}
	return t, nil
}

func (e *endpoint) signal(w http.ResponseWriter, r *route.Request) error {
	var req structs.AllocSignalRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	if req.Signal == "" {
		return structs.Errorf(structs.CodeInvalid, "must provide a signal")
	}
	alloc, err := e.Alloc(r.Param("alloc_id"))
	if err != nil {
		return err
	}
	if err := alloc.Signal(r.Context(), req.Task, req.Signal); err != nil {
		return err
	}
	return answer(w, r, struct{}{})
}

func (e *endpoint) collectAlloc(w http.ResponseWriter, r *route.Request) error {
	if err := e.CollectAlloc(r.Context(), r.Param("alloc_id")); err != nil {
		return err
	}
	return answer(w, r, struct{}{})
}
