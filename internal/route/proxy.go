package route

import (
	"io"
	"net/http"
	"net/http/httputil"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// copyBuffers are for bodies on their way through.
type copyBuffers struct{ pool sync.Pool }

func (c *copyBuffers) Get() []byte {
	if b, ok := c.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (c *copyBuffers) Put(b []byte) { c.pool.Put(&b) }

var buffers copyBuffers

// Proxy sends r through rt, one hop further on with its caller's identity, and streams the answer to w; upgrades pass
// through as raw bytes. It gives the error of rt when no answer has begun. An answer that breaks off later ends the
// connection of w, so that it never looks complete.
func Proxy(w http.ResponseWriter, r *Request, rt http.RoundTripper, log hclog.Logger) error {
	var failed error
	broken := &breakWatch{}
	p := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "http", "session"
			pr.Out.Host = pr.In.Host
			pr.Out.Header.Del("Expect")
			pr.Out.Header.Del("Accept-Encoding") // the public port compresses
			Forward(pr.Out.Header, r.Caller)
		},
		Transport:     rt,
		FlushInterval: -1,
		BufferPool:    &buffers,
		ErrorLog:      log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode != http.StatusSwitchingProtocols {
				broken.ReadCloser = res.Body
				res.Body = broken
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	in := *r.Request
	if in.Body != nil {
		// The proxy closes the body of what it sends. Here it must live on, in case the handler of this process takes
		// over; the server closes it.
		in.Body = io.NopCloser(in.Body)
	}
	p.ServeHTTP(w, &in)
	if failed == nil && broken.err != nil {
		panic(http.ErrAbortHandler)
	}
	return failed
}

// breakWatch remembers that a body ended before its end.
type breakWatch struct {
	io.ReadCloser
	err error
}

func (b *breakWatch) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}
