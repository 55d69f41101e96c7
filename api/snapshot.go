package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Snapshot takes a snapshot of the cluster's state and writes its archive to w. It fails when what came is not what was
// sent; then what was written is of no use.
func (o *Operator) Snapshot(ctx context.Context, w io.Writer, q *QueryOptions) (*QueryMeta, error) {
	resp, err := o.client.Do(ctx, http.MethodGet, "/v1/operator/snapshot", q.values(o.client.cfg.WaitTime), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	digest := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, digest), resp.Body); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	want, _ := strings.CutPrefix(resp.Header.Get("Digest"), "sha-256=")
	if want != base64.StdEncoding.EncodeToString(digest.Sum(nil)) {
		return nil, errors.New("read snapshot: it was damaged or cut off on its way")
	}
	return readQueryMeta(resp.Header), nil
}

// RestoreSnapshot puts the state of an archive in the place of the cluster's.
func (o *Operator) RestoreSnapshot(ctx context.Context, archive io.Reader, w *WriteOptions) (*WriteMeta, error) {
	return o.client.write(ctx, http.MethodPut, "/v1/operator/snapshot", w, archive, nil)
}
