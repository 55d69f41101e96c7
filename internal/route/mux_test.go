package route

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

func echo(name string) Handler {
	return func(w http.ResponseWriter, r *Request) error {
		_, err := io.WriteString(w, name+" "+r.Param("job_id")+"|"+r.Param("name")+"|"+r.Param("id"))
		return err
	}
}

func testRoutes() []Route {
	return []Route{
		{Methods: []string{"GET", "POST"}, Path: "/v1/jobs", Callers: Public, Handle: echo("jobs")},
		{Methods: []string{"POST"}, Path: "/v1/jobs/parse", Callers: Public, Handle: echo("parse")},
		{Methods: []string{"GET"}, Path: "/v1/job/{job_id}", Callers: Public, Handle: echo("job")},
		{Methods: []string{"DELETE"}, Path: "/v1/job/{job_id}", Callers: Public, Handle: echo("delete")},
		{Methods: []string{"GET"}, Path: "/v1/job/{job_id}/allocations", Callers: Public, Handle: echo("allocs")},
		{Methods: []string{"PUT"}, Path: "/v1/job/{job_id}/versions/{name}/tag", Callers: Public, Handle: echo("tag")},
		{Methods: []string{"GET"}, Path: "/v1/job/{job_id}/versions", Callers: Public, Handle: echo("versions")},
		{Methods: []string{"GET"}, Path: "/v1/node/pool/{name}", Callers: Public, Handle: echo("pool")},
		{Methods: []string{"GET"}, Path: "/v1/node/{id}", Callers: Public, Handle: echo("node")},
		{Path: "/ui/{name...}", Callers: Public, Handle: echo("ui")},
		{Methods: []string{"PUT"}, Path: "/v1/internal/node/register", Callers: NodeSession, Handle: echo("register")},
		{Methods: []string{"PUT"}, Path: "/v1/internal/plan", Callers: ServerSession, Handle: echo("plan")},
	}
}

func TestMatching(t *testing.T) {
	m, err := NewPublic(Config{Routes: testRoutes()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/v1/jobs", "200 jobs ||"},
		{"HEAD", "/v1/jobs", "200 jobs ||"},
		{"DELETE", "/v1/jobs", "405 Invalid method [GET, HEAD, POST]"},
		{"POST", "/v1/jobs/parse", "200 parse ||"},
		{"GET", "/v1/job/a", "200 job a||"},
		{"DELETE", "/v1/job/a", "200 delete a||"},
		{"PUT", "/v1/job/a", "405 Invalid method [DELETE, GET, HEAD]"},
		{"DELETE", "/v1/job/%ff", "400 the path is no valid UTF-8"},
		{"GET", "/v1/job/a/allocations", "200 allocs a||"},
		{"GET", "/v1/job/a%2Fallocations", "200 job a/allocations||"},
		{"GET", "/v1/job/a/b/allocations", "200 allocs a/b||"},
		{"GET", "/v1/job/a%2Fb/allocations", "200 allocs a/b||"},
		{"GET", "/v1/job/a/periodic-1%20x", "200 job a/periodic-1 x||"},
		{"PUT", "/v1/job/x/versions/v%2F1/tag", "200 tag x|v/1|"},
		{"GET", "/v1/job/a/versions/versions", "200 versions a/versions||"},
		{"GET", "/v1/job/", "404 404 page not found"},
		{"GET", "/v1/node/pool/p", "200 pool |p|"},
		{"GET", "/v1/node/n1", "200 node ||n1"},
		{"GET", "/v1/node/n1/x", "404 404 page not found"},
		{"PUT", "/ui/a/b.js", "200 ui |a/b.js|"},
		{"GET", "/ui/", "200 ui ||"},
		{"PUT", "/v1/internal/node/register", "404 404 page not found"},
		{"PUT", "/v1/internal/plan", "404 404 page not found"},
		{"GET", "/", "404 404 page not found"},
	} {
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, httptest.NewRequest(c.method, c.path, nil))
		got := rec.Result().Status[:3] + " " + rec.Body.String()
		if allow := rec.Header().Get("Allow"); allow != "" {
			got += " [" + allow + "]"
		}
		if got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestTableRefusesTwoRowsForOneMethod(t *testing.T) {
	r := Route{Methods: []string{"GET"}, Path: "/v1/node/{id}", Callers: Public, Handle: echo("")}
	other := r
	other.Path = "/v1/node/{node_id}"
	if _, err := NewPublic(Config{Routes: []Route{r, other}}); err == nil {
		t.Fatal("accepted")
	}
	if _, err := NewPublic(Config{Routes: []Route{{Path: "/x", Handle: echo("")}}}); err == nil {
		t.Fatal("accepted a row which nobody may call")
	}
}

func TestSessionsReachWhatTheyMay(t *testing.T) {
	node, _ := NewNodeSession(Config{Routes: testRoutes()})
	server, _ := NewServerSession(Config{Routes: testRoutes()})
	asNode := http.Header{}
	Forward(asNode, Identity{Kind: NodeSession, NodeID: "n1", Hops: 1})
	asPublic := http.Header{}
	Forward(asPublic, Identity{Kind: Public})
	for _, c := range []struct {
		mux    *Mux
		path   string
		header http.Header
		want   int
	}{
		{node, "/v1/internal/node/register", nil, 200},
		{node, "/v1/internal/plan", nil, 404},
		{server, "/v1/internal/plan", nil, 200},
		{server, "/v1/internal/node/register", nil, 404},
		{server, "/v1/internal/node/register", asNode, 200},
		{server, "/v1/internal/plan", asNode, 404},
		{server, "/v1/internal/plan", asPublic, 404},
	} {
		req := httptest.NewRequest("PUT", c.path, nil)
		for k, v := range c.header {
			req.Header[k] = v
		}
		rec := httptest.NewRecorder()
		c.mux.For(Identity{NodeID: "n1"}).ServeHTTP(rec, req)
		if rec.Code != c.want {
			t.Errorf("%s with %v: got %d, want %d", c.path, c.header, rec.Code, c.want)
		}
	}
}

func TestIdentityIsNeverTakenFromOutside(t *testing.T) {
	var got Identity
	routes := []Route{{Path: "/x", Callers: Public, Handle: func(w http.ResponseWriter, r *Request) error {
		got = r.Caller
		for name := range r.Header {
			if strings.HasPrefix(name, identityPrefix) {
				t.Errorf("header %s reached the handler", name)
			}
		}
		return nil
	}}}
	public, _ := NewPublic(Config{Routes: routes})
	node, _ := NewNodeSession(Config{Routes: routes})
	server, _ := NewServerSession(Config{Routes: routes})
	forged := Identity{Kind: NodeSession, NodeID: "other", Addr: "1.2.3.4:5", Hops: 1}
	send := func(m *Mux, hops int) int {
		req := httptest.NewRequest("GET", "/x", nil)
		id := forged
		id.Hops = hops
		Forward(req.Header, id)
		rec := httptest.NewRecorder()
		m.For(Identity{NodeID: "me"}).ServeHTTP(rec, req)
		return rec.Code
	}
	send(public, 1)
	if got.Kind != Public || got.NodeID == "other" || got.Hops != 0 {
		t.Errorf("public: %+v", got)
	}
	send(node, 1)
	if got.Kind != NodeSession || got.NodeID != "me" || got.Hops != 2 {
		t.Errorf("node: %+v", got)
	}
	send(server, 1)
	if got.Kind != NodeSession || got.NodeID != "other" || got.Hops != 2 || got.Addr != "1.2.3.4:5" {
		t.Errorf("server: %+v", got)
	}
	if code := send(server, 2); code != 200 {
		t.Errorf("three hops: %d", code)
	}
	if code := send(server, 3); code != 500 {
		t.Errorf("four hops: %d", code)
	}
}

type fakeForwarder struct{ leader, node string }

func (f *fakeForwarder) ToLeader(w http.ResponseWriter, r *Request) bool {
	if f.leader != "" {
		_, _ = io.WriteString(w, f.leader)
	}
	return f.leader != ""
}

func (f *fakeForwarder) ToNode(w http.ResponseWriter, r *Request, id string) bool {
	if id == f.node {
		return false
	}
	_, _ = io.WriteString(w, "to "+id)
	return true
}

func TestWhoServes(t *testing.T) {
	nodeOf := func(r *Request) (string, error) {
		if id := r.URL.Query().Get("node"); id != "" {
			return id, nil
		}
		return "", structs.ErrNodeNotFound
	}
	m, _ := NewPublic(Config{Forwarder: &fakeForwarder{leader: "leader", node: "n1"}, Routes: []Route{
		{Path: "/leader", ServedBy: Leader, Callers: Public, Handle: echo("here")},
		{Path: "/any", ServedBy: Any, Callers: Public, Handle: echo("here")},
		{Path: "/node", ServedBy: Node, NodeOf: nodeOf, Callers: Public, Handle: echo("here")},
	}})
	for _, c := range []struct{ method, url, want string }{
		{"GET", "/leader", "leader"},
		{"GET", "/leader?stale", "here ||"},
		{"PUT", "/leader?stale", "leader"},
		{"PUT", "/any", "here ||"},
		{"GET", "/node?node=n1", "here ||"},
		{"GET", "/node?node=n2", "to n2"},
		{"GET", "/node", "node not found"},
	} {
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, httptest.NewRequest(c.method, c.url, nil))
		if rec.Body.String() != c.want {
			t.Errorf("%s %s: got %q, want %q", c.method, c.url, rec.Body, c.want)
		}
	}
}

func TestErrorsPanicsAndLimits(t *testing.T) {
	var log bytes.Buffer
	m, _ := NewPublic(Config{MaxBody: 10, Headers: map[string]string{"X-Extra": "1"},
		Logger: hclog.New(&hclog.LoggerOptions{Output: &log}),
		Routes: []Route{
			{Path: "/panic", Callers: Public, Handle: func(http.ResponseWriter, *Request) error { panic("secret") }},
			{Path: "/err", Callers: Public, Handle: func(http.ResponseWriter, *Request) error {
				return structs.Errorf(structs.CodePermission, "Permission denied")
			}},
			{Path: "/plain", Callers: Public, Handle: func(http.ResponseWriter, *Request) error { return errors.New("x") }},
			{Path: "/body", Callers: Public, Handle: func(w http.ResponseWriter, r *Request) error {
				_, err := io.Copy(io.Discard, r.Body)
				return err
			}},
			{Path: "/late", Callers: Public, Handle: func(w http.ResponseWriter, r *Request) error {
				_, _ = w.Write([]byte("begun"))
				return errors.New("late")
			}},
		}})
	srv := httptest.NewServer(m)
	defer srv.Close()
	chunked := func(n int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", n))) }
	for _, c := range []struct {
		path string
		body io.Reader
		code int
		want string
	}{
		{"/panic", nil, 500, "internal error"},
		{"/err", nil, 403, "Permission denied"},
		{"/plain", nil, 500, "x"},
		{"/body", strings.NewReader("0123456789"), 200, ""},
		{"/body", strings.NewReader("0123456789a"), 413, "request body is larger than 10 bytes"},
		{"/body", chunked(11), 413, "request body is larger than 10 bytes"},
		{"/late", nil, 200, "begun"},
	} {
		res, err := http.Post(srv.URL+c.path, "", c.body)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.code || string(body) != c.want {
			t.Errorf("%s: got %d %q, want %d %q", c.path, res.StatusCode, body, c.code, c.want)
		}
		if res.Header.Get("X-Extra") != "1" {
			t.Errorf("%s: configured header is missing", c.path)
		}
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "mux_test.go") {
		t.Error("the panic and its stack are not in the log")
	}
}

func TestCompression(t *testing.T) {
	big := strings.Repeat("nomadlite ", 1000)
	write := func(kind, body string) Handler {
		return func(w http.ResponseWriter, r *Request) error {
			w.Header().Set("Content-Type", kind)
			_, err := io.WriteString(w, body)
			return err
		}
	}
	m, _ := NewPublic(Config{Routes: []Route{
		{Path: "/big", Callers: Public, Handle: write("application/json", big)},
		{Path: "/small", Callers: Public, Handle: write("application/json", "{}")},
		{Path: "/octets", Callers: Public, Handle: write("application/octet-stream", big)},
		{Path: "/row", Callers: Public, Stream: true, Handle: write("application/json", big)},
		{Path: "/flushed", Callers: Public, Handle: func(w http.ResponseWriter, r *Request) error {
			w.(http.Flusher).Flush()
			_, err := io.WriteString(w, big)
			return err
		}},
	}})
	srv := httptest.NewServer(m)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/big": "gzip", "/small": "", "/octets": "", "/row": "", "/flushed": ""} {
		for _, accept := range []string{"gzip", "", "gzip;q=0"} {
			req, _ := http.NewRequest("GET", srv.URL+path, nil)
			if accept != "" {
				req.Header.Set("Accept-Encoding", accept)
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got := res.Header.Get("Content-Encoding")
			expect := want
			if accept != "gzip" {
				expect = ""
			}
			body := io.Reader(res.Body)
			if got == "gzip" {
				if body, err = gzip.NewReader(res.Body); err != nil {
					t.Fatal(err)
				}
			}
			data, err := io.ReadAll(body)
			_ = res.Body.Close()
			if err != nil || got != expect || (path != "/small" && string(data) != big) {
				t.Errorf("%s accepting %q: %q, %d bytes, %v", path, accept, got, len(data), err)
			}
		}
	}
}

func TestHijackPassesThrough(t *testing.T) {
	m, _ := NewPublic(Config{Routes: []Route{{Path: "/up", Callers: Public,
		Handle: func(w http.ResponseWriter, r *Request) error {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
			return rw.Flush()
		}}}})
	srv := httptest.NewServer(m)
	defer srv.Close()
	req, _ := http.NewRequest("GET", srv.URL+"/up", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "x")
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != 101 || string(data) != "hello" {
		t.Fatalf("got %d %q", res.StatusCode, data)
	}
}

// TestTheNodesPublicPortIsNotTheNode: what an agent forwards for its public port may only what the public may.
func TestTheNodesPublicPortIsNotTheNode(t *testing.T) {
	m, err := NewNodeSession(Config{Routes: testRoutes()})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/v1/internal/node/register": 404, "/v1/job/a/versions/b/tag": 200} {
		own := httptest.NewRecorder()
		m.For(Identity{NodeID: "me"}).ServeHTTP(own, httptest.NewRequest("PUT", path, nil))
		if own.Code != 200 {
			t.Errorf("%s by the node: %d", path, own.Code)
		}
		req := httptest.NewRequest("PUT", path, nil)
		Forward(req.Header, Identity{Kind: Public})
		forwarded := httptest.NewRecorder()
		m.For(Identity{NodeID: "me"}).ServeHTTP(forwarded, req)
		if forwarded.Code != want {
			t.Errorf("%s by somebody at the node's public port: %d, want %d", path, forwarded.Code, want)
		}
	}
}
