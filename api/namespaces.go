package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// Namespaces are the calls about namespaces.
type Namespaces struct{ client *Client }

// Namespaces gives the calls about namespaces.
func (c *Client) Namespaces() *Namespaces { return &Namespaces{client: c} }

// List gives all namespaces.
func (n *Namespaces) List(ctx context.Context, q *QueryOptions) ([]*structs.Namespace, *QueryMeta, error) {
	var out []*structs.Namespace
	meta, err := n.client.get(ctx, "/v1/namespaces", q, &out)
	return out, meta, err
}

// Info gives one namespace.
func (n *Namespaces) Info(ctx context.Context, name string, q *QueryOptions) (*structs.Namespace, *QueryMeta, error) {
	var out structs.Namespace
	meta, err := n.client.get(ctx, "/v1/namespace/"+url.PathEscape(name), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Register stores a namespace.
func (n *Namespaces) Register(ctx context.Context, ns *structs.Namespace, w *WriteOptions) (*WriteMeta, error) {
	return n.client.write(ctx, http.MethodPut, "/v1/namespace", w, ns, nil)
}

// Delete removes a namespace; it must be empty.
func (n *Namespaces) Delete(ctx context.Context, name string, w *WriteOptions) (*WriteMeta, error) {
	return n.client.write(ctx, http.MethodDelete, "/v1/namespace/"+url.PathEscape(name), w, nil, nil)
}
