package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// Paths which other servers' workers call. They are never on the public port.
const (
	pathDequeue = "/v1/internal/eval/dequeue"
	pathEnd     = "/v1/internal/eval/end"
	pathUpdate  = "/v1/internal/eval/update"
	pathPlan    = "/v1/internal/plan/submit"
)

// dequeueWait is how long a dequeue over a session is held before it answers that there is nothing.
const dequeueWait = 30 * time.Second

// remoteLease is how long a delivery to another server lasts without being renewed, if the broker's own limit is not
// shorter: a server that is killed cannot give back what it has.
const remoteLease = 10 * time.Second

type dequeueRequest struct{ Types []string }

// endRequest ends or renews a delivery: Verb is ack, nack or renew.
type endRequest struct{ Verb, EvalID, Token string }

type updateRequest struct {
	EvalID, Token string
	Evals         []*structs.Evaluation
}

type updateResponse struct{ Index uint64 }

// planRequest carries a plan. Allocations travel without their job, which the leader has.
type planRequest struct{ Plan *structs.Plan }

// Routes serve other servers' workers from the leader's broker and plan queue.
func Routes(local *Local) []route.Route {
	row := func(path string, handle route.Handler) route.Route {
		return route.Route{Methods: []string{http.MethodPost}, Path: path, ServedBy: route.Leader,
			Callers: route.ServerSession, Handle: handle, MaxBody: -1}
	}
	return []route.Route{
		row(pathDequeue, local.serveDequeue), row(pathEnd, local.serveEnd),
		row(pathUpdate, local.serveUpdate), row(pathPlan, local.servePlan),
	}
}

func (l *Local) serveDequeue(w http.ResponseWriter, r *route.Request) error {
	var req dequeueRequest
	if err := read(r.Body, &req); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), dequeueWait)
	defer cancel()
	d, err := l.Dequeue(ctx, req.Types)
	if errors.Is(err, context.DeadlineExceeded) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	if d.Lease > remoteLease {
		d.Lease = remoteLease
		if err := l.Evals.Shorten(d.Eval.ID, d.Token, d.Lease); err != nil {
			return err
		}
	}
	if err := write(w, d); err != nil {
		return l.Evals.Nack(d.Eval.ID, d.Token) // nobody has it
	}
	return nil
}

func (l *Local) serveEnd(w http.ResponseWriter, r *route.Request) error {
	var req endRequest
	if err := read(r.Body, &req); err != nil {
		return err
	}
	var err error
	switch req.Verb {
	case "ack":
		err = l.Evals.Ack(req.EvalID, req.Token)
	case "nack":
		err = l.Evals.Nack(req.EvalID, req.Token)
	case "renew":
		err = l.Evals.Renew(req.EvalID, req.Token)
	default:
		err = structs.Errorf(structs.CodeInvalid, "unknown verb %q", req.Verb)
	}
	if err != nil {
		return refuse(w, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (l *Local) serveUpdate(w http.ResponseWriter, r *route.Request) error {
	var req updateRequest
	if err := read(r.Body, &req); err != nil {
		return err
	}
	index, err := l.UpdateEvals(r.Context(), req.EvalID, req.Token, req.Evals)
	if err != nil {
		return refuse(w, err)
	}
	return write(w, updateResponse{Index: index})
}

func (l *Local) servePlan(w http.ResponseWriter, r *route.Request) error {
	var req planRequest
	if err := read(r.Body, &req); err != nil {
		return err
	}
	if req.Plan == nil {
		return structs.Errorf(structs.CodeInvalid, "request holds no plan")
	}
	result, err := l.SubmitPlan(r.Context(), req.Plan)
	if err != nil {
		return refuse(w, err)
	}
	return write(w, result)
}

// refuse lets the other side tell a stale token from other faults.
func refuse(w http.ResponseWriter, err error) error {
	if errors.Is(err, structs.ErrStaleToken) {
		w.WriteHeader(http.StatusConflict)
		return nil
	}
	return err
}

func read(body io.Reader, into any) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return structs.Errorf(structs.CodeInvalid, "read request: %w", err)
	}
	if err := codec.Unmarshal(data, into); err != nil {
		return structs.Errorf(structs.CodeInvalid, "read request: %w", err)
	}
	return nil
}

func write(w http.ResponseWriter, v any) error {
	data, err := codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	w.Header().Set("Content-Type", codec.ContentType)
	_, err = w.Write(data)
	return err
}

// Remote is the broker and the plan queue of the leader, over the session to it.
type Remote struct {
	// Do sends a request to the leader.
	Do func(req *http.Request) (*http.Response, error)
}

var (
	_ Broker = (*Remote)(nil)
	_ Leader = (*Remote)(nil)
)

// Dequeue waits for an evaluation.
func (r *Remote) Dequeue(ctx context.Context, types []string) (Delivery, error) {
	for {
		var d Delivery
		if err := r.call(ctx, pathDequeue, dequeueRequest{Types: types}, &d); err != nil {
			return Delivery{}, err
		}
		if d.Eval != nil {
			return d, nil
		}
	}
}

// Ack ends a delivery.
func (r *Remote) Ack(ctx context.Context, evalID, token string) error {
	return r.call(ctx, pathEnd, endRequest{"ack", evalID, token}, nil)
}

// Nack gives a delivery back.
func (r *Remote) Nack(ctx context.Context, evalID, token string) error {
	return r.call(ctx, pathEnd, endRequest{"nack", evalID, token}, nil)
}

// Renew moves the deadline of a delivery.
func (r *Remote) Renew(ctx context.Context, evalID, token string) error {
	return r.call(ctx, pathEnd, endRequest{"renew", evalID, token}, nil)
}

// SubmitPlan hands a plan to the leader's applier.
func (r *Remote) SubmitPlan(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	result := &structs.PlanResult{}
	if err := r.call(ctx, pathPlan, planRequest{Plan: p}, result); err != nil {
		return nil, err
	}
	return result, nil
}

// UpdateEvals stores evaluations.
func (r *Remote) UpdateEvals(ctx context.Context, evalID, token string, evals []*structs.Evaluation) (uint64, error) {
	var resp updateResponse
	err := r.call(ctx, pathUpdate, updateRequest{EvalID: evalID, Token: token, Evals: evals}, &resp)
	return resp.Index, err
}

func (r *Remote) call(ctx context.Context, path string, in, out any) error {
	body, err := codec.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask leader: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask leader: %w", err)
	}
	req.Header.Set("Content-Type", codec.ContentType)
	resp, err := r.Do(req)
	if err != nil {
		return fmt.Errorf("ask leader: %w", err)
	}
	defer resp.Body.Close() // read to its end
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask leader: %w", err)
	}
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil
	case resp.StatusCode == http.StatusConflict:
		return structs.ErrStaleToken
	case resp.StatusCode != http.StatusOK:
		return structs.Errorf(structs.CodeInternal, "ask leader: %s: %s", resp.Status, data)
	case out == nil:
		return nil
	}
	if err := codec.Unmarshal(data, out); err != nil {
		return fmt.Errorf("read the leader's answer: %w", err)
	}
	return nil
}
