package agent

import (
	"io"
	"net/http"
	"time"
)

// Bounds of the time in which a request's body has to come: whoever sends one byte a minute holds what its handler holds.
const (
	bodyPause = 30 * time.Second // between two pieces
	bodyLimit = 10 * time.Minute // as a whole
)

// boundBodies lets no request wait for its body for longer than that. Upgraded connections have none.
func boundBodies(next http.Handler, pause, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody && r.Header.Get("Upgrade") == "" {
			r.Body = &boundBody{ReadCloser: r.Body, pause: pause, last: time.Now().Add(limit),
				set: http.NewResponseController(w).SetReadDeadline}
		}
		next.ServeHTTP(w, r)
	})
}

type boundBody struct {
	io.ReadCloser
	pause time.Duration
	last  time.Time
	set   func(time.Time) error
}

func (b *boundBody) Read(p []byte) (int, error) {
	by := time.Now().Add(b.pause)
	if b.last.Before(by) {
		by = b.last
	}
	_ = b.set(by) // what has no deadlines, as in a test, is not bounded
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.set(time.Time{}) // the server goes on reading, to see the connection end; after a fault, to skip the rest
	}
	return n, err
}
