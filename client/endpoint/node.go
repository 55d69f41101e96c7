package endpoint

import (
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

func (e *endpoint) metadata(w http.ResponseWriter, r *route.Request) error {
	meta := e.Node().Meta
	return answer(w, r, &structs.NodeMetaResponse{Meta: meta, Dynamic: map[string]*string{}, Static: meta})
}
