package client

import (
	"context"
	"fmt"
	"maps"
	"regexp"

	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/structs"
)

// metadataKey is the row of the metadata that was set while the node ran.
const metadataKey = "metadata"

// maxMetadata bounds how many keys can be set while the node runs, those included that were unset.
const maxMetadata = 1000

// metadataName is what a key may be: jobs refer to it as ${meta.KEY}.
var metadataName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// restoreMetadata gives a node that was just described the metadata which was set by an earlier agent.
func (c *Client) restoreMetadata(node *structs.Node) error {
	c.nodeMu.Lock()
	defer c.nodeMu.Unlock()
	if _, err := c.db.Get(state.Node, metadataKey, &c.dynamicMeta); err != nil {
		return err
	}
	node.Meta = mergeMetadata(c.cfg.Meta, c.dynamicMeta)
	node.ComputeClass()
	return nil
}

// mergeMetadata gives what counts: the configuration's metadata with what was set since; nil unsets a key.
func mergeMetadata(static map[string]string, dynamic map[string]*string) map[string]string {
	out := maps.Clone(static)
	if out == nil {
		out = map[string]string{}
	}
	for key, value := range dynamic {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = *value
		}
	}
	return out
}

// Metadata gives the node's metadata: what counts, what was set while it ran, what its configuration says.
func (c *Client) Metadata() *structs.NodeMetaResponse {
	c.nodeMu.Lock()
	defer c.nodeMu.Unlock()
	return c.metadataLocked()
}

func (c *Client) metadataLocked() *structs.NodeMetaResponse {
	out := &structs.NodeMetaResponse{Meta: mergeMetadata(c.cfg.Meta, c.dynamicMeta), Dynamic: maps.Clone(c.dynamicMeta),
		Static: mergeMetadata(c.cfg.Meta, nil)}
	if out.Dynamic == nil {
		out.Dynamic = map[string]*string{}
	}
	return out
}

// ApplyMetadata sets keys of the node's metadata, or unsets those whose value is nil, until they are set otherwise: it
// answers once that is on disk. The servers hear of it at once, by a registration; tasks that run keep what they were
// given. It fails with CodeInvalid for what can be no key.
func (c *Client) ApplyMetadata(ctx context.Context, changes map[string]*string) (*structs.NodeMetaResponse, error) {
	if len(changes) == 0 {
		return nil, structs.Errorf(structs.CodeInvalid, "missing required Meta object")
	}
	for key := range changes {
		if !metadataName.MatchString(key) {
			return nil, structs.Errorf(structs.CodeInvalid, "metadata key %q is invalid: it must consist of letters, digits and _ . - /", key)
		}
	}
	durable := make(chan error, 1)
	out, err := c.setMetadata(changes, durable)
	if err != nil {
		return nil, err
	}
	nudge(c.wakeDuty)
	select {
	case err := <-durable:
		if err != nil {
			return nil, fmt.Errorf("metadata is set, but not kept: %w", err)
		}
		return out, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Client) setMetadata(changes map[string]*string, durable chan<- error) (*structs.NodeMetaResponse, error) {
	c.nodeMu.Lock()
	defer c.nodeMu.Unlock()
	dynamic := maps.Clone(c.dynamicMeta)
	if dynamic == nil {
		dynamic = map[string]*string{}
	}
	maps.Copy(dynamic, changes)
	if len(dynamic) > maxMetadata {
		return nil, structs.Errorf(structs.CodeInvalid, "a node has at most %d keys of metadata that were set or unset, not %d",
			maxMetadata, len(dynamic))
	}
	c.dynamicMeta = dynamic
	c.db.Put(state.Node, metadataKey, dynamic, func(err error) { durable <- err })
	node := *c.Node()
	node.Meta = mergeMetadata(c.cfg.Meta, dynamic)
	node.ComputeClass()
	c.node.Store(&node)
	c.reregister.Store(true)
	return c.metadataLocked(), nil
}
