package route

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

// DefaultMaxBody bounds request bodies, in bytes.
const DefaultMaxBody = 32 << 20

// Config is what a mux is built from.
type Config struct {
	Routes []Route
	// Forwarder takes requests elsewhere; nil serves every route here.
	Forwarder Forwarder
	// Unmatched serves what no row matches, such as a client agent's proxy to its servers; nil answers 404.
	Unmatched Handler
	Logger    hclog.Logger
	// MaxBody bounds request bodies in bytes; 0 is DefaultMaxBody, negative no bound.
	MaxBody int64
	// Headers are added to every answer of the public port (http_api_response_headers).
	Headers map[string]string
}

// Mux answers one kind of entry from the route table.
type Mux struct {
	cfg   Config
	kind  Callers
	table *table
}

// NewPublic builds the mux of the HTTP port: only public rows exist there.
func NewPublic(cfg Config) (*Mux, error) { return newMux(cfg, Public) }

// NewNodeSession builds the mux of what nodes ask on their sessions.
func NewNodeSession(cfg Config) (*Mux, error) { return newMux(cfg, NodeSession) }

// NewServerSession builds the mux of what servers ask, of each other and of nodes. The caller of a forwarded request
// is its first sender, and the row must admit that one.
func NewServerSession(cfg Config) (*Mux, error) { return newMux(cfg, ServerSession) }

func newMux(cfg Config, kind Callers) (*Mux, error) {
	t, err := newTable(cfg.Routes)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	return &Mux{cfg: cfg, kind: kind, table: t}, nil
}

// ServeHTTP answers a request whose sender is known by nothing but the kind of entry.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.serve(w, r, Identity{}) }

// For gives the handler of one connection, whose requests carry id. The kind is always the mux's own.
func (m *Mux) For(id Identity) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, id) })
}

func (m *Mux) serve(w http.ResponseWriter, r *http.Request, conn Identity) {
	conn.Kind = m.kind
	if conn.Addr == "" {
		conn.Addr = r.RemoteAddr
	}
	aw := &answer{ResponseWriter: w}
	if m.kind == Public {
		for k, v := range m.cfg.Headers {
			w.Header().Set(k, v)
		}
		aw.compress = acceptsGzip(r)
	}
	defer m.finish(aw, r)
	caller, err := take(r.Header, conn)
	if err != nil {
		WriteError(aw, err)
		return
	}
	req := &Request{Request: r, Caller: caller}
	handle, maxBody, err := m.route(aw, req)
	if err != nil {
		WriteError(aw, err)
		return
	}
	if maxBody > 0 {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close")
			if r.Header.Get("Expect") == "" {
				// Who is still writing may lose an answer that comes before, with the connection. What is much too large does.
				_, _ = io.CopyN(io.Discard, r.Body, 2*maxBody)
			}
			WriteError(aw, tooLarge(maxBody))
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
	}
	if err := m.call(aw, req, handle); err != nil {
		m.fail(aw, req, err)
	}
}

// route finds who answers the request, without looking at its body.
func (m *Mux) route(aw *answer, req *Request) (Handler, int64, error) {
	if !utf8.ValidString(req.URL.Path) {
		return nil, 0, structs.Errorf(structs.CodeInvalid, "the path is no valid UTF-8")
	}
	leaf, values := m.table.match(req.URL.EscapedPath())
	if leaf != nil {
		row, allow := leaf.row(req.Method, req.Caller.Kind)
		if row.Route != nil {
			req.Params = row.params(values)
			aw.compress = aw.compress && !row.Stream && !row.WebSocket
			maxBody := row.MaxBody
			if maxBody == 0 {
				maxBody = m.cfg.MaxBody
			}
			handle := m.handler(row.Route)
			if row.WebSocket {
				handle = webSocket(m.kind, handle)
			}
			return handle, maxBody, nil
		}
		if len(allow) > 0 {
			aw.Header().Set("Allow", strings.Join(allow, ", "))
			return nil, 0, structs.Errorf(structs.CodeMethod, "Invalid method")
		}
		// Rows exist, but not for this caller: to him they do not.
	}
	if m.cfg.Unmatched != nil {
		return m.cfg.Unmatched, m.cfg.MaxBody, nil
	}
	return nil, 0, structs.Errorf(structs.CodeNotFound, "404 page not found")
}

// handler wraps a row in the question of who serves it.
func (m *Mux) handler(row *Route) Handler {
	fw := m.cfg.Forwarder
	if fw == nil {
		return row.Handle
	}
	switch row.ServedBy {
	case Leader:
		return func(w http.ResponseWriter, r *Request) error {
			if !stale(r) && fw.ToLeader(w, r) {
				return nil
			}
			return row.Handle(w, r)
		}
	case Node:
		return func(w http.ResponseWriter, r *Request) error {
			if row.NodeOf != nil {
				id, err := row.NodeOf(r)
				if err != nil {
					return err
				}
				if fw.ToNode(w, r, id) {
					return nil
				}
			}
			return row.Handle(w, r)
		}
	}
	return row.Handle
}

// stale says whether a read may be answered by any server.
func stale(r *Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if r.URL.RawQuery == "" {
		return false
	}
	_, ok := r.URL.Query()["stale"]
	return ok
}

// call runs the handler and turns a panic into an error that tells nothing.
func (m *Mux) call(aw *answer, req *Request, handle Handler) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if e, ok := p.(error); ok && errors.Is(e, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler) // the server cuts the connection: the answer cannot be completed
		}
		m.cfg.Logger.Error("panic in handler", "method", req.Method, "path", req.URL.Path, "panic", p,
			"stack", string(debug.Stack()))
		if aw.wrote {
			panic(http.ErrAbortHandler)
		}
		err = errPanic
	}()
	return handle(aw, req)
}

// errPanic is all that a caller learns of a panic.
var errPanic = errors.New("internal error")

// fail answers with a handler's error, unless the answer has begun.
func (m *Mux) fail(aw *answer, req *Request, err error) {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		err = tooLarge(tooBig.Limit)
	}
	if aw.wrote || aw.hijacked {
		m.cfg.Logger.Warn("request failed after its answer began", "method", req.Method, "path", req.URL.Path,
			"error", err)
		return
	}
	if structs.ErrorCode(err) == structs.CodeInternal && req.Context().Err() == nil {
		m.cfg.Logger.Error("request failed", "method", req.Method, "path", req.URL.Path, "error", err)
	}
	WriteError(aw, err)
}

// finish completes a compressed answer.
func (m *Mux) finish(aw *answer, r *http.Request) {
	if err := aw.close(); err != nil {
		m.cfg.Logger.Debug("could not complete an answer", "path", r.URL.Path, "error", err)
	}
}

func tooLarge(limit int64) error {
	return structs.Errorf(structs.CodeTooLarge, "request body is larger than %d bytes", limit)
}

// CodeHeader carries the structs.Code of a failed request, so that our own clients need not read texts.
const CodeHeader = "X-Nomadlite-Code"

// WriteError answers with the text of err and the status of its code.
func WriteError(w http.ResponseWriter, err error) {
	h := w.Header()
	h.Set(CodeHeader, strconv.Itoa(int(structs.ErrorCode(err))))
	h.Del("Content-Length")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(structs.ErrorCode(err).HTTPStatus())
	_, _ = w.Write([]byte(err.Error()))
}

// ReadError turns a failed answer into the error which the other side wrote. It reads the body, up to 64 KiB.
func ReadError(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("read error answer: %w", err)
	}
	code := structs.CodeInternal
	if n, err := strconv.Atoi(res.Header.Get(CodeHeader)); err == nil {
		code = structs.Code(n)
	}
	return &structs.CodedError{Code: code, Text: strings.TrimSpace(string(text))}
}
