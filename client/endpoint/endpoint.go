package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// Alloc is an allocation on this node.
type Alloc interface {
	HasTask(name string) bool
	// TaskOver is closed once the task writes no more.
	TaskOver(name string) <-chan struct{}
	RestartTask(name string, terms allocrunner.Terms) error
	RestartRunning(terms allocrunner.Terms) error
	RestartAll(terms allocrunner.Terms) error
	Signal(ctx context.Context, task, signal string) error
	Observer
	Commands
}

// Observer tells how an allocation does.
type Observer interface {
	Stats(ctx context.Context, task string) (map[string]*structs.TaskResourceUsage, error)
	// Checks are the newest results of its checks.
	Checks() structs.AllocCheckStatuses
}

// Commands are what can be run beside the tasks of an allocation.
type Commands interface {
	// Exec runs a command beside a task and gives its exit code.
	Exec(ctx context.Context, task string, req *driver.ExecRequest) (int, error)
	// Action gives the command of an action of a task.
	Action(task, action string) ([]string, error)
}

// Backend is what the client gives its handlers. Errors carry codes; an allocation that has nothing on this node is
// not found.
type Backend interface {
	Alloc(id string) (Alloc, error)
	AllocDir(id string) (*allocdir.Dir, error)
	HostStats(ctx context.Context) (*structs.HostStats, error)
	CollectAll(ctx context.Context)
	CollectAlloc(ctx context.Context, id string) error
	Metadata() *structs.NodeMetaResponse
	ApplyMetadata(ctx context.Context, changes map[string]*string) (*structs.NodeMetaResponse, error)
}

// Locate finds the node that answers: by the allocation of the path, and by the parameter node_id. Nil means this
// node.
type Locate struct {
	Alloc func(r *route.Request) (string, error)
	Param func(r *route.Request) (string, error)
}

// Routes is the table of everything that a node answers itself.
func Routes(b Backend, l Locate) []route.Route {
	e := &endpoint{b}
	put := []string{http.MethodPut, http.MethodPost}
	ofAlloc := func(methods []string, path string, stream bool, h route.Handler) route.Route {
		return route.Route{Methods: methods, Path: path, ServedBy: route.Node, Callers: route.Public, NodeOf: l.Alloc, Handle: h, Stream: stream}
	}
	ofNode := func(methods []string, path string, h route.Handler) route.Route {
		return route.Route{Methods: methods, Path: path, ServedBy: route.Node, Callers: route.Public, NodeOf: l.Param, Handle: h}
	}
	return []route.Route{
		ofAlloc(nil, "/v1/client/fs/ls/{alloc_id}", false, e.list),
		ofAlloc(nil, "/v1/client/fs/stat/{alloc_id}", false, e.stat),
		ofAlloc(nil, "/v1/client/fs/cat/{alloc_id}", false, e.cat),
		ofAlloc(nil, "/v1/client/fs/readat/{alloc_id}", false, e.readAt),
		ofAlloc(nil, "/v1/client/fs/stream/{alloc_id}", true, e.stream),
		ofAlloc(nil, "/v1/client/fs/logs/{alloc_id}", true, e.logs),
		ofAlloc(nil, "/v1/client/allocation/{alloc_id}/stats", false, e.allocStats),
		ofAlloc(nil, "/v1/client/allocation/{alloc_id}/checks", false, e.allocChecks),
		ofAlloc(nil, "/v1/allocation/{alloc_id}/checks", false, e.allocChecks),
		ofAlloc(put, "/v1/client/allocation/{alloc_id}/restart", false, e.restart),
		ofAlloc(put, "/v1/client/allocation/{alloc_id}/signal", false, e.signal),
		ofAlloc(nil, "/v1/client/allocation/{alloc_id}/gc", false, e.collectAlloc),
		{Path: "/v1/client/allocation/{alloc_id}/exec", ServedBy: route.Node, Callers: route.Public, NodeOf: l.Alloc, Handle: e.exec,
			Methods: []string{http.MethodGet}, WebSocket: true},
		{Path: "/v1/job/{job_id}/action", ServedBy: route.Node, Callers: route.Public, Handle: e.action,
			Methods: []string{http.MethodGet}, WebSocket: true},
		ofNode(nil, "/v1/client/stats", e.hostStats),
		ofNode(nil, "/v1/client/gc", e.collectAll),
		ofNode(append(put, http.MethodGet), "/v1/client/metadata", e.metadata),
	}
}

type endpoint struct{ Backend }

// answer writes v as JSON, indented when the parameter pretty is there.
func answer(w http.ResponseWriter, r *route.Request, v any) error {
	var data []byte
	var err error
	if r.URL.Query().Has("pretty") {
		data, err = json.MarshalIndent(v, "", "    ")
	} else {
		data, err = json.Marshal(v)
	}
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return nilOnceBegun(err)
}

// nilOnceBegun drops what went wrong while the answer was being sent: its reader is gone, and nobody else is told.
func nilOnceBegun(error) error { return nil }

// number reads an integer parameter; absent gives def.
func number(r *route.Request, name string, def int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, structs.Errorf(structs.CodeInvalid, "error parsing %s: %q is not a number", name, text)
	}
	return n, nil
}

// flag reads a boolean parameter; absent gives def, present without a value true.
func flag(r *route.Request, name string, def bool) (bool, error) {
	q := r.URL.Query()
	if !q.Has(name) {
		return def, nil
	}
	text := q.Get(name)
	if text == "" {
		return true, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, structs.Errorf(structs.CodeInvalid, "error parsing %s: %q is neither true nor false", name, text)
	}
	return v, nil
}
