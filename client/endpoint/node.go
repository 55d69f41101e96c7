package endpoint

import (
	"encoding/json"
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

func (e *endpoint) hostStats(w http.ResponseWriter, r *route.Request) error {
	s, err := e.HostStats(r.Context())
	if err != nil {
		return err
	}
	return answer(w, r, s)
}

func (e *endpoint) collectAll(w http.ResponseWriter, r *route.Request) error {
	e.CollectAll(r.Context())
	return answer(w, r, struct{}{})
}

// metadata reads the node's metadata, or sets some of it. The request was brought here by the node that it names.
func (e *endpoint) metadata(w http.ResponseWriter, r *route.Request) error {
	if r.Method == http.MethodGet {
		return answer(w, r, e.Metadata())
	}
	var req structs.NodeMetaApplyRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return structs.Errorf(structs.CodeInvalid, "decode request: %w", err)
	}
	out, err := e.ApplyMetadata(r.Context(), req.Meta)
	if err != nil {
		return err
	}
	return answer(w, r, out)
}
