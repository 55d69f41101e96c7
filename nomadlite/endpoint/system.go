package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
)

func systemRoutes(b *Backend) []route.Route {
	return []route.Route{
		put("/v1/system/gc", b.handler(func(w http.ResponseWriter, r *route.Request, q *query) error {
			if err := b.Cluster.ForceGC(r.Context()); err != nil {
				return err
			}
			return answerWrite(w, q, b.Store.Index(), nil)
		})),
		put("/v1/system/reconcile/summaries", b.handler(func(w http.ResponseWriter, r *route.Request, q *query) error {
			_, index, err := b.apply(r.Context(), fsm.KindReconcileSummaries, &fsm.ReconcileSummaries{})
			if err != nil {
				return err
			}
			return answerWrite(w, q, index, nil)
		})),
	}
}

// put is a row which the leader answers to PUT only.
func put(path string, handle route.Handler) route.Route {
	row := write(path, handle)
	row.Methods = []string{http.MethodPut}
	return row
}
