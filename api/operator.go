package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/nomadlite/nomadlite/structs"
)

// Operator are the calls for who runs the cluster.
type Operator struct{ client *Client }

// Operator gives the calls for who runs the cluster.
func (c *Client) Operator() *Operator { return &Operator{client: c} }

// RaftServer is one peer of raft.
type RaftServer struct {
	ID           string
	Node         string
	Address      string
	Leader       bool
	Voter        bool
	RaftProtocol string
}

// RaftConfiguration is raft's set of peers.
type RaftConfiguration struct {
	Servers []*RaftServer
	Index   uint64
}

// RaftConfiguration gives raft's peers.
func (o *Operator) RaftConfiguration(ctx context.Context, q *QueryOptions) (*RaftConfiguration, error) {
	var out RaftConfiguration
	if _, err := o.client.get(ctx, "/v1/operator/raft/configuration", q, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// SchedulerConfiguration gives the scheduler's configuration.
func (o *Operator) SchedulerConfiguration(ctx context.Context, q *QueryOptions) (
	*structs.SchedulerConfiguration, *QueryMeta, error,
) {
	var out structs.SchedulerConfigurationResponse
	meta, err := o.client.get(ctx, "/v1/operator/scheduler/configuration", q, &out)
	return out.SchedulerConfig, meta, err
}

// SetSchedulerConfiguration stores the scheduler's configuration; with cas only if it is still at cfg.ModifyIndex,
// and it says whether it did.
func (o *Operator) SetSchedulerConfiguration(ctx context.Context, cfg *structs.SchedulerConfiguration, cas bool, w *WriteOptions) (
	bool, *WriteMeta, error,
) {
	var out structs.SchedulerSetConfigurationResponse
	if cas {
		w = w.with(map[string]string{"cas": strconv.FormatUint(cfg.ModifyIndex, 10)})
	}
	meta, err := o.client.write(ctx, http.MethodPut, "/v1/operator/scheduler/configuration", w, cfg, &out)
	return out.Updated, meta, err
}

// Keys gives the keyring's keys.
func (o *Operator) Keys(ctx context.Context, q *QueryOptions) ([]*structs.RootKeyMeta, *QueryMeta, error) {
	var out []*structs.RootKeyMeta
	meta, err := o.client.get(ctx, "/v1/operator/keyring/keys", q, &out)
	return out, meta, err
}

// RotateKey makes a new key the active one; with full, everything is encrypted anew under it.
func (o *Operator) RotateKey(ctx context.Context, full bool, w *WriteOptions) (*structs.RootKeyMeta, *WriteMeta, error) {
	var out struct{ Key *structs.RootKeyMeta }
	if full {
		w = w.with(map[string]string{"full": "true"})
	}
	meta, err := o.client.write(ctx, http.MethodPut, "/v1/operator/keyring/rotate", w, nil, &out)
	return out.Key, meta, err
}

// Metrics gives the agent's figures as JSON.
func (o *Operator) Metrics(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	_, err := o.client.get(ctx, "/v1/metrics", nil, &out)
	return out, err
}
