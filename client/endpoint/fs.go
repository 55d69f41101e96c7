package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/logs"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// heartbeat is how often a stream without news sends an empty frame, so that nothing between takes it for dead.
const heartbeat = 10 * time.Second

func (e *endpoint) dir(r *route.Request) (*allocdir.Dir, error) {
	return e.AllocDir(r.Param("alloc_id"))
}

// path reads the parameter path, which must be there.
func path(r *route.Request) (string, error) {
	p := r.URL.Query().Get("path")
	if p == "" {
		return "", structs.Errorf(structs.CodeInvalid, "must provide a file name")
	}
	return p, nil
}

func (e *endpoint) list(w http.ResponseWriter, r *route.Request) error {
	dir, err := e.dir(r)
	if err != nil {
		return err
	}
	p := r.URL.Query().Get("path")
	if p == "" {
		p = "/"
	}
	files, err := dir.List(p)
	if err != nil {
		return err
	}
	return answer(w, r, files)
}

func (e *endpoint) stat(w http.ResponseWriter, r *route.Request) error {
	p, err := path(r)
	if err != nil {
		return err
	}
	dir, err := e.dir(r)
	if err != nil {
		return err
	}
	info, err := dir.Stat(p)
	if err != nil {
		return err
	}
	return answer(w, r, info)
}

func (e *endpoint) cat(w http.ResponseWriter, r *route.Request) error {
	return e.read(w, r, 0, -1)
}

func (e *endpoint) readAt(w http.ResponseWriter, r *route.Request) error {
	offset, err := number(r, "offset", 0)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", -1)
	if err != nil {
		return err
	}
	if limit <= 0 {
		limit = -1 // no limit
	}
	return e.read(w, r, offset, limit)
}

// read sends bytes of a file as they are.
func (e *endpoint) read(w http.ResponseWriter, r *route.Request, offset, limit int64) error {
	p, err := path(r)
	if err != nil {
		return err
	}
	dir, err := e.dir(r)
	if err != nil {
		return err
	}
	body, err := dir.ReadAt(p, offset, limit)
	if err != nil {
		return err
	}
	defer body.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	// A file of a task is whatever the task wrote: a browser must not take it for a page of this agent.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, err = io.Copy(w, body)
	return nilOnceBegun(err)
}

func (e *endpoint) stream(w http.ResponseWriter, r *route.Request) error {
	p, err := path(r)
	if err != nil {
		return err
	}
	origin, offset, follow, err := place(r, true)
	if err != nil {
		return err
	}
	dir, err := e.dir(r)
	if err != nil {
		return err
	}
	s, err := logs.OpenFile(dir, p, origin, offset, follow)
	if err != nil {
		return err
	}
	return send(w, r, s, nil)
}

func (e *endpoint) logs(w http.ResponseWriter, r *route.Request) error {
	q := r.URL.Query()
	task, kind := q.Get("task"), q.Get("type")
	if task == "" {
		return structs.Errorf(structs.CodeInvalid, "must provide task name")
	}
	if kind != logs.Stdout && kind != logs.Stderr {
		return structs.Errorf(structs.CodeInvalid, "must provide log type (stdout/stderr)")
	}
	origin, offset, follow, err := place(r, false)
	if err != nil {
		return err
	}
	alloc, err := e.Alloc(r.Param("alloc_id"))
	if err != nil {
		return err
	}
	if !alloc.HasTask(task) {
		return structs.Errorf(structs.CodeNotFound, "unknown task %q", task)
	}
	dir, err := e.dir(r)
	if err != nil {
		return err
	}
	var over <-chan struct{}
	if follow {
		over = alloc.TaskOver(task)
	}
	s, err := logs.Open(dir, task, kind, origin, offset, follow)
	if err != nil {
		return err
	}
	return send(w, r, s, over)
}

// place reads where a stream begins and whether it goes on.
func place(r *route.Request, follows bool) (origin string, offset int64, follow bool, err error) {
	if follow, err = flag(r, "follow", follows); err != nil {
		return "", 0, false, err
	}
	if offset, err = number(r, "offset", 0); err != nil {
		return "", 0, false, err
	}
	switch origin = r.URL.Query().Get("origin"); origin {
	case "":
		origin = logs.OriginStart
	case logs.OriginStart, logs.OriginEnd:
	default:
		err = structs.Errorf(structs.CodeInvalid, "invalid origin %q, must be %q or %q", origin, logs.OriginStart, logs.OriginEnd)
	}
	return origin, offset, follow, err
}

// send writes a stream as frames, one JSON object a line, or as plain text. Once over is closed it ends with what is
// there.
func send(w http.ResponseWriter, r *route.Request, s *logs.Stream, over <-chan struct{}) error {
	defer s.Close()
	plain, err := flag(r, "plain", false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if over != nil {
		finished := make(chan struct{})
		defer func() { cancel(); <-finished }()
		go func() {
			defer close(finished)
			select {
			case <-over:
				s.Finish()
			case <-ctx.Done():
			}
		}()
	}
	write := frames(w)
	w.Header().Set("Content-Type", "application/json")
	if plain {
		write = text(w)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
	}
	w.WriteHeader(http.StatusOK)
	return nilOnceBegun(pump(ctx, s, write, http.NewResponseController(w)))
}

// pump moves frames until the stream ends or its reader is gone. It flushes when there is nothing more to send at
// once.
func pump(ctx context.Context, s *logs.Stream, write func(*structs.StreamFrame) error, rc *http.ResponseController) error {
	_ = rc.Flush()
	for {
		wait, cancel := context.WithTimeout(ctx, heartbeat)
		frame, err := s.Next(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			frame = &structs.StreamFrame{}
		case err != nil:
			return err
		}
		if err := write(frame); err != nil {
			return err
		}
		if err := rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
}

func frames(w io.Writer) func(*structs.StreamFrame) error {
	enc := json.NewEncoder(w)
	return func(f *structs.StreamFrame) error { return enc.Encode(f) }
}

func text(w io.Writer) func(*structs.StreamFrame) error {
	return func(f *structs.StreamFrame) error {
		_, err := w.Write(f.Data)
		return err
	}
}
