package agent

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// ownRoutes are the rows about this very agent.
func (a *Agent) ownRoutes() []route.Route {
	row := func(path string, handle route.Handler) route.Route {
		return route.Route{Methods: []string{http.MethodGet}, Path: path, ServedBy: route.Local, Callers: route.Public, Handle: handle}
	}
	rows := []route.Route{row("/v1/agent/self", a.self), row("/v1/agent/health", a.health)}
	if a.server == nil {
		rows = append(rows, row("/v1/metrics", a.metrics), row("/v1/agent/servers", a.knownServers))
	}
	if a.set.EnableDebug {
		for path, handler := range map[string]http.HandlerFunc{"/debug/pprof/cmdline": pprof.Cmdline,
			"/debug/pprof/profile": pprof.Profile, "/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace} {
			rows = append(rows, row(path, plainHandler(handler)))
		}
		rows = append(rows, row("/debug/pprof/", plainHandler(pprof.Index)))
		rows = append(rows, row("/debug/pprof/{profile}", func(w http.ResponseWriter, r *route.Request) error {
			pprof.Handler(r.Param("profile")).ServeHTTP(w, r.Request)
			return nil
		}))
	}
	return rows
}

func plainHandler(h http.HandlerFunc) route.Handler {
	return func(w http.ResponseWriter, r *route.Request) error {
		h(w, r.Request)
		return nil
	}
}

func reply(w http.ResponseWriter, r *route.Request, status int, v any) error {
	var raw []byte
	var err error
	if _, pretty := r.URL.Query()["pretty"]; pretty {
		raw, err = json.MarshalIndent(v, "", "    ")
	} else {
		raw, err = json.Marshal(v)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n'))
	return nil
}

func (a *Agent) self(w http.ResponseWriter, r *route.Request) error {
	config, err := a.publicConfig()
	if err != nil {
		return err
	}
	out := structs.AgentSelf{Config: config, Stats: map[string]map[string]string{}}
	if a.server != nil {
		out.Member = *a.server.Self()
		out.Stats = a.server.Stats()
	}
	if a.client != nil {
		out.Stats["client"] = a.client.Stats()
	}
	return reply(w, r, http.StatusOK, out)
}

// publicConfig is the configuration with its defaults and without its secrets.
func (a *Agent) publicConfig() (map[string]any, error) {
	raw, err := json.Marshal(redacted(reflect.ValueOf(a.set.Config)).Interface())
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	r := resolver{c: a.set.Config, dev: a.set.Dev}
	out["Region"], out["Datacenter"], out["NodeName"] = r.region(), r.datacenter(), r.name()
	out["DevMode"] = a.set.Dev
	out["Version"] = map[string]any{"Version": structs.CompatVersion, "VersionPrerelease": "", "VersionMetadata": "", "Revision": ""}
	return out, nil
}

// secretKeys are the configuration keys which nobody is shown.
var secretKeys = map[string]bool{"encrypt": true, "token": true, "auth": true, "replication_token": true, "circonus_api_token": true}

// redacted copies a configuration with its secrets struck out.
func redacted(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type().Elem().Kind() != reflect.Struct {
			return v
		}
		out := reflect.New(v.Type().Elem())
		for i := range v.Elem().NumField() {
			key, _, _ := strings.Cut(v.Type().Elem().Field(i).Tag.Get("hcl"), ",")
			f := v.Elem().Field(i)
			if secretKeys[key] && f.Kind() == reflect.Pointer && !f.IsNil() {
				f = reflect.ValueOf(structs.Ptr("<redacted>"))
			} else {
				f = redacted(f)
			}
			out.Elem().Field(i).Set(f)
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(redacted(v.Index(i)))
		}
		return out
	}
	return v
}

func (a *Agent) health(w http.ResponseWriter, r *route.Request) error {
	kind := r.URL.Query().Get("type")
	switch kind {
	case "", "client", "server":
	default:
		return structs.Errorf(structs.CodeInvalid, "type must be client or server, not %q", kind)
	}
	var out structs.AgentHealthResponse
	status := http.StatusOK
	check := func(healthy bool, reason string) *structs.AgentHealth {
		if !healthy {
			status = http.StatusInternalServerError
		}
		return &structs.AgentHealth{OK: healthy, Message: reason}
	}
	if kind != "server" {
		switch {
		case a.client != nil:
			out.Client = check(a.client.Health())
		case kind == "client":
			out.Client = check(false, "client not enabled")
		}
	}
	if kind != "client" {
		switch {
		case a.server != nil:
			out.Server = check(a.server.Health())
		case kind == "server":
			out.Server = check(false, "server not enabled")
		}
	}
	return reply(w, r, status, out)
}

func (a *Agent) knownServers(w http.ResponseWriter, r *route.Request) error {
	return reply(w, r, http.StatusOK, a.client.Servers().Servers())
}

// metrics are the figures of an agent that is no server.
func (a *Agent) metrics(w http.ResponseWriter, r *route.Request) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	gauge := func(name string, value float64) map[string]any {
		return map[string]any{"Name": name, "Value": value, "Labels": map[string]string{}}
	}
	return reply(w, r, http.StatusOK, map[string]any{"Timestamp": time.Now().UTC().Format("2006-01-02 15:04:05 -0700 MST"),
		"Gauges": []any{gauge("nomad.runtime.alloc_bytes", float64(m.Alloc)), gauge("nomad.runtime.heap_objects", float64(m.HeapObjects)),
			gauge("nomad.runtime.num_goroutines", float64(runtime.NumGoroutine())), gauge("nomad.runtime.sys_bytes", float64(m.Sys))},
		"Points": []any{}, "Counters": []any{}, "Samples": []any{}})
}
