package route

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/nomadlite/nomadlite/structs"
)

// NamedNode gives the node which a request names: by the parameter node_id, else by the field NodeID of its JSON body. It
// is empty when the request names none. Of a body only what the row allows is read, and it can be read again.
func (r *Request) NamedNode() (string, error) {
	if id := r.URL.Query().Get("node_id"); id != "" {
		return id, nil
	}
	if r.Body == nil || r.Body == http.NoBody || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return "", nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return "", structs.Errorf(structs.CodeInvalid, "read request: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	var named struct{ NodeID string }
	if err := json.Unmarshal(text, &named); err != nil {
		return "", nil // who decodes it says what is wrong
	}
	return named.NodeID, nil
}
