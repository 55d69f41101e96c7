package route

import (
	"bufio"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// compressFrom is the size in bytes from which an answer is worth compressing.
const compressFrom = 1400

// answer is the ResponseWriter that handlers get: it knows whether the answer has begun, and compresses it when the
// sender accepts that, the content gains by it and nobody streams. Flush and Hijack pass through.
type answer struct {
	http.ResponseWriter
	wrote    bool // the handler has begun its answer
	hijacked bool
	compress bool // may compress
	status   int
	held     []byte // written but not yet decided upon
	decided  bool
	gz       *gzip.Writer
}

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is constant
	}
	return w
}}

// Unwrap lets http.ResponseController and session.Park reach the connection's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	if a.wrote {
		return
	}
	a.wrote = true
	a.status = status
	if !a.compress || status != http.StatusOK || !a.compressible() {
		a.decide(false)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.wrote {
		if a.Header().Get("Content-Type") == "" && a.compress {
			a.Header().Set("Content-Type", http.DetectContentType(p))
		}
		a.WriteHeader(http.StatusOK)
	}
	if !a.decided {
		if len(a.held)+len(p) < compressFrom {
			a.held = append(a.held, p...)
			return len(p), nil
		}
		a.decide(true)
		if err := a.release(); err != nil {
			return 0, err
		}
	}
	if a.gz != nil {
		return a.gz.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// decide sends the header, for a compressed body or a plain one.
func (a *answer) decide(compress bool) {
	a.decided = true
	h := a.Header()
	if a.compress && a.status != http.StatusSwitchingProtocols {
		h.Add("Vary", "Accept-Encoding")
	}
	if compress {
		h.Del("Content-Length")
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", http.DetectContentType(a.held))
		}
		h.Set("Content-Encoding", "gzip")
		a.gz = gzipWriters.Get().(*gzip.Writer)
		a.gz.Reset(a.ResponseWriter)
	}
	a.ResponseWriter.WriteHeader(a.status)
}

func (a *answer) release() error {
	held := a.held
	a.held = nil
	if len(held) == 0 {
		return nil
	}
	var err error
	if a.gz != nil {
		_, err = a.gz.Write(held)
	} else {
		_, err = a.ResponseWriter.Write(held)
	}
	return err
}

// Flush sends what was written. A handler that flushes before there was much to send is streaming: its answer stays
// plain.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is Flush for http.ResponseController.
func (a *answer) FlushError() error {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
	if !a.decided {
		a.decide(false)
	}
	if err := a.release(); err != nil {
		return err
	}
	if a.gz != nil {
		if err := a.gz.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack gives the connection away.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.hijacked, a.decided, a.wrote = true, true, true
	}
	return conn, rw, err
}

// close sends what is held and ends the compressed stream.
func (a *answer) close() error {
	if a.hijacked || !a.wrote {
		return nil
	}
	if !a.decided {
		a.decide(false)
	}
	err := a.release()
	if a.gz != nil {
		if e := a.gz.Close(); err == nil {
			err = e
		}
		a.gz.Reset(io.Discard)
		gzipWriters.Put(a.gz)
		a.gz = nil
	}
	return err
}

// compressible looks at the content: text gains, what is compressed already does not.
func (a *answer) compressible() bool {
	h := a.Header()
	if h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" {
		return false
	}
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch kind = strings.TrimSpace(kind); kind {
	case "", "application/json", "application/javascript", "application/openmetrics-text", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// acceptsGzip reads Accept-Encoding. Upgrades and ranges are left alone.
func acceptsGzip(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" || r.Header.Get("Range") != "" || r.Method == http.MethodHead {
		return false
	}
	for _, list := range r.Header["Accept-Encoding"] {
		for _, item := range strings.Split(list, ",") {
			name, params, _ := strings.Cut(item, ";")
			if name = strings.TrimSpace(name); name != "gzip" && name != "*" {
				continue
			}
			q := strings.ReplaceAll(params, " ", "")
			return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
		}
	}
	return false
}
