package servers

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
	"github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/structs"
)

// maxAnswer bounds an answer of the node protocol, in bytes.
const maxAnswer = 256 << 20

// Register introduces the node, or updates what it says about itself. The answer tells when the first heartbeat is
// due. Servers that it names are learnt. It fails with structs.CodePermission when the servers know the node with
// another secret.
func (c *Conn) Register(ctx context.Context, node *structs.Node) (*structs.NodeHeartbeatResponse, error) {
	return c.beat(ctx, "register", &structs.NodeRegisterRequest{Node: node, Agent: c.cfg.Agent})
}

// Heartbeat says that the node is alive. An answer with Known false asks it to register again.
func (c *Conn) Heartbeat(ctx context.Context, status string, fresh bool) (*structs.NodeHeartbeatResponse, error) {
	return c.beat(ctx, "heartbeat", &structs.NodeHeartbeatRequest{
		NodeID: c.cfg.NodeID, SecretID: c.cfg.SecretID, Status: status, FreshReport: fresh, Agent: c.cfg.Agent,
	})
}

func (c *Conn) beat(ctx context.Context, what string, req any) (*structs.NodeHeartbeatResponse, error) {
	var res structs.NodeHeartbeatResponse
	if err := c.call(ctx, what, req, &res); err != nil {
		switch structs.ErrorCode(err) {
		case structs.CodeNoLeader, structs.CodeUnavailable:
			// This server has waited for a leader in vain: it may be cut off from the others.
			if len(c.Servers()) > 1 {
				c.Leave()
			}
		}
		return nil, err
	}
	if len(res.Servers) > 0 {
		c.SetServers(res.Servers)
	}
	return &res, nil
}

// Assignments waits for news of what the node should run. NodeID and SecretID of req are filled in. See Assigned for
// what to ask and what to do with the answer.
func (c *Conn) Assignments(ctx context.Context, req structs.AssignmentsRequest) (*structs.AssignmentsResponse, error) {
	req.NodeID, req.SecretID = c.cfg.NodeID, c.cfg.SecretID
	var res structs.AssignmentsResponse
	if err := c.call(ctx, "assignments", &req, &res); err != nil {
		return nil, err
	}
	return &res, nil
}

// UpdateAllocs reports what the node saw of its allocations. After nil the servers have it for good; after an error
// they may have it, and the same report may be sent again.
func (c *Conn) UpdateAllocs(ctx context.Context, observations []*structs.AllocObservation) error {
	return c.call(ctx, "allocs", &structs.NodeAllocsUpdateRequest{
		NodeID: c.cfg.NodeID, SecretID: c.cfg.SecretID, Observations: observations,
	}, nil)
}

// UpdateServices changes what the node offers in the service registry. NodeID and SecretID of req are filled in. After
// nil it is so for good; after an error it may be so, and everything should be told again.
func (c *Conn) UpdateServices(ctx context.Context, req structs.NodeServicesRequest) error {
	req.NodeID, req.SecretID = c.cfg.NodeID, c.cfg.SecretID
	return c.call(ctx, "services", &req, nil)
}

// Depart says that the node goes for good: see structs.NodeLeaveRequest. NodeID, SecretID and Agent of req are filled
// in.
func (c *Conn) Depart(ctx context.Context, req structs.NodeLeaveRequest) error {
	req.NodeID, req.SecretID, req.Agent = c.cfg.NodeID, c.cfg.SecretID, c.cfg.Agent
	return c.call(ctx, "leave", &req, nil)
}

// Away says that the node expects to be back within that time.
func (c *Conn) Away(ctx context.Context, d time.Duration) error {
	return c.call(ctx, "away", &structs.NodeAwayRequest{NodeID: c.cfg.NodeID, SecretID: c.cfg.SecretID, For: d}, nil)
}

// call sends one message of the node protocol.
func (c *Conn) call(ctx context.Context, what string, in, out any) error {
	body, err := codec.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode %s request: %w", what, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "/v1/internal/node/"+what, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make %s request: %w", what, err)
	}
	req.Header.Set("Content-Type", codec.ContentType)
	res, err := c.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("send %s: %w", what, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return route.ReadError(res)
	}
	if out == nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read %s answer: %w", what, err)
	}
	if err := codec.Unmarshal(data, out); err != nil {
		return fmt.Errorf("decode %s answer: %w", what, err)
	}
	return nil
}

// RoundTrip sends a request to the server over the session, waiting for one as long as the request's context lets
// it. A request of which nothing was sent goes to the next session.
func (c *Conn) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		s, err := c.wait(req.Context())
		if err != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
		out := *req
		if req.Body != nil && req.Body != http.NoBody {
			out.Body = io.NopCloser(req.Body) // a session closes the body even of what it did not send
		}
		res, err := s.RoundTrip(&out)
		if err != nil && errors.Is(err, session.ErrNotSent) && req.Context().Err() == nil {
			continue
		}
		return res, err
	}
}
