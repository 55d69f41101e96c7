package endpoint

import (
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// Routes gives the rows which a server answers. It does no I/O.
func Routes(b *Backend) []route.Route {
	b.started = time.Now()
	groups := [][]route.Route{
		jobRoutes(b), jobWriteRoutes(b), jobPlanRoutes(b), jobLaunchRoutes(b), jobRelatedRoutes(b), jobExplainRoutes(b), scalingRoutes(b),
		allocationRoutes(b), evaluationRoutes(b), nodeRoutes(b),
		nodeWriteRoutes(b), nodePoolRoutes(b), namespaceRoutes(b), deploymentRoutes(b),
		deploymentWriteRoutes(b), statusRoutes(b), agentRoutes(b),
		operatorRoutes(b), snapshotRoutes(b), keyringRoutes(b), systemRoutes(b), metricsRoutes(b), searchRoutes(b), serviceRoutes(b), aclRoutes(),
		unsupportedRoutes(b), clientRoutes(b),
	}
	var rows []route.Route
	for _, group := range groups {
		rows = append(rows, group...)
	}
	return rows
}

// read is a row which the leader answers, or with ?stale any server.
func read(path string, handle route.Handler) route.Route {
	return route.Route{
		Methods: []string{http.MethodGet}, Path: path, ServedBy: route.Leader, Callers: route.Public, Handle: handle,
	}
}

// write is a row which the leader answers to PUT and POST.
func write(path string, handle route.Handler) route.Route {
	return route.Route{
		Methods: []string{http.MethodPut, http.MethodPost}, Path: path, ServedBy: route.Leader, Callers: route.Public,
		Handle: handle,
	}
}

// remove is a row which the leader answers to DELETE.
func remove(path string, handle route.Handler) route.Route {
	return route.Route{
		Methods: []string{http.MethodDelete}, Path: path, ServedBy: route.Leader, Callers: route.Public, Handle: handle,
	}
}

// local is a read which any server answers for itself.
func local(path string, handle route.Handler) route.Route {
	return route.Route{
		Methods: []string{http.MethodGet}, Path: path, ServedBy: route.Any, Callers: route.Public, Handle: handle,
	}
}

// limited bounds the body of a row by the limit for jobs.
func (b *Backend) limited(row route.Route) route.Route {
	row.MaxBody = b.Limits.MaxBodyBytes
	return row
}

func notFound(what string) error {
	return structs.Errorf(structs.CodeNotFound, "%s not found", what)
}
