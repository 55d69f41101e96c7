package route

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNamedNode(t *testing.T) {
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/?node_id=a", `{"NodeID":"b"}`, "a"},
		{"POST", "/", `{"NodeID":"b","Meta":{}}`, "b"},
		{"PUT", "/", `{"Meta":{}}`, ""},
		{"PUT", "/", `nonsense`, ""},
		{"PUT", "/", ``, ""},
		{"GET", "/", `{"NodeID":"b"}`, ""},
	} {
		r := &Request{Request: httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))}
		got, err := r.NamedNode()
		if err != nil || got != c.want {
			t.Errorf("%s %s %s: %q, %v", c.method, c.path, c.body, got, err)
		}
		if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != c.body {
			t.Errorf("%s %s: the body is then %q, %v", c.method, c.body, rest, err)
		}
	}
}
