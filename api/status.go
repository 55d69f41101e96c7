package api

import "context"

// Status are the calls about the cluster's servers.
type Status struct{ client *Client }

// Status gives the calls about the cluster's servers.
func (c *Client) Status() *Status { return &Status{client: c} }

// Leader gives the leader's host:port, empty when there is none.
func (s *Status) Leader(ctx context.Context) (string, error) {
	var out string
	_, err := s.client.get(ctx, "/v1/status/leader", nil, &out)
	return out, err
}

// Peers gives host:port of all servers in raft.
func (s *Status) Peers(ctx context.Context) ([]string, error) {
	var out []string
	_, err := s.client.get(ctx, "/v1/status/peers", nil, &out)
	return out, err
}

// Regions gives the names of all regions.
func (s *Status) Regions(ctx context.Context) ([]string, error) {
	var out []string
	_, err := s.client.get(ctx, "/v1/regions", nil, &out)
	return out, err
}
