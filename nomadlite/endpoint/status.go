package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
)

func statusRoutes(b *Backend) []route.Route {
	return []route.Route{
		local("/v1/status/leader", b.handler(func(w http.ResponseWriter, _ *route.Request, q *query) error {
			return answer(w, q, b.Raft.LeaderAddr())
		})),
		local("/v1/status/peers", b.handler(func(w http.ResponseWriter, _ *route.Request, q *query) error {
			peers := b.Raft.Peers()
			if peers == nil {
				peers = []string{}
			}
			return answer(w, q, peers)
		})),
		local("/v1/regions", b.handler(func(w http.ResponseWriter, _ *route.Request, q *query) error {
			return answer(w, q, []string{b.Region})
		})),
	}
}
