package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/nomadlite/nomadlite/structs"
)

// Agent are the calls about the agent itself.
type Agent struct{ client *Client }

// Agent gives the calls about the agent itself.
func (c *Client) Agent() *Agent { return &Agent{client: c} }

// Self gives the agent's configuration, member and figures.
func (a *Agent) Self(ctx context.Context) (*structs.AgentSelf, error) {
	var out structs.AgentSelf
	if _, err := a.client.get(ctx, "/v1/agent/self", nil, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Members gives the servers of the cluster as the agent sees them.
func (a *Agent) Members(ctx context.Context, q *QueryOptions) (*structs.ServerMembers, error) {
	var out structs.ServerMembers
	if _, err := a.client.get(ctx, "/v1/agent/members", q, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Health says how the agent's client and server are. An unhealthy agent is an answer, no error.
func (a *Agent) Health(ctx context.Context) (*structs.AgentHealthResponse, error) {
	var out structs.AgentHealthResponse
	_, err := a.client.get(ctx, "/v1/agent/health", nil, &out)
	var answer *Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusInternalServerError &&
		json.Unmarshal([]byte(answer.Text), &out) == nil {
		return &out, nil
	}
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// Servers gives host:port of the servers which a client agent knows.
func (a *Agent) Servers(ctx context.Context) ([]string, error) {
	var out []string
	_, err := a.client.get(ctx, "/v1/agent/servers", nil, &out)
	return out, err
}
