package nomadlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/keyring"
	"github.com/nomadlite/nomadlite/structs"
)

// pathIndex tells how new the leader's state is.
const pathIndex = "/v1/internal/cluster/index"

type indexResponse struct{ Index uint64 }

// internalRoutes are what servers ask each other beyond what the rooms bring.
func (s *Server) internalRoutes() []route.Route {
	return []route.Route{
		{Methods: []string{http.MethodGet}, Path: keyring.Path, ServedBy: route.Local, Callers: route.ServerSession,
			Handle: s.keys.Handler},
		{Methods: []string{http.MethodGet}, Path: pathIndex, ServedBy: route.Leader, Callers: route.ServerSession,
			Handle: func(w http.ResponseWriter, _ *route.Request) error {
				w.Header().Set("Content-Type", "application/json")
				return json.NewEncoder(w).Encode(indexResponse{Index: s.store.Index()})
			}},
	}
}

// leaderIndex asks the leader how new its state is.
func (s *Server) leaderIndex(ctx context.Context) (uint64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pathIndex, nil)
	if err != nil {
		return 0, fmt.Errorf("ask leader for its index: %w", err)
	}
	body, err := answer(s.forwarder.Do(req))
	if err != nil {
		return 0, fmt.Errorf("ask leader for its index: %w", err)
	}
	var resp indexResponse
	if err := json.Unmarshal(body, &resp); err != nil {
		return 0, fmt.Errorf("ask leader for its index: %w", err)
	}
	return resp.Index, nil
}

// fetchKeyFile asks the other servers, the leader first, for the key file.
func (s *Server) fetchKeyFile(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var failed error
	for _, addr := range append([]string{s.lead.LeaderAddr()}, s.lead.Peers()...) {
		if addr == "" || addr == s.Addr() {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, keyring.Path, nil)
		if err != nil {
			return nil, fmt.Errorf("fetch key file: %w", err)
		}
		body, err := answer(s.port.Peer(addr).RoundTrip(req))
		if err == nil {
			return body, nil
		}
		failed = errors.Join(failed, fmt.Errorf("fetch key file from %s: %w", addr, err))
	}
	if failed == nil {
		failed = structs.ErrNoLeader
	}
	return nil, failed
}

// answer reads a small answer of another server wholly.
func answer(resp *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // read to its end
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, nil
}
