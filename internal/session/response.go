package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// holdUpTo is how many bytes of an answer are held back, so that a small one has a length and goes out as one frame.
const holdUpTo = 4096

// response is the ResponseWriter of one exchange.
type response struct {
	s      *Session
	x      *exchange
	head   bool // request was HEAD
	header http.Header
	status int
	held   []byte
	bw     *bufio.Writer // not nil once the header was sent

	chunked  bool
	length   int64 // declared by the handler, -1: not
	written  int64
	sent     bool // the header is on its way
	failed   bool
	hijacked bool
	parked   bool
}

var (
	_ http.Flusher  = (*response)(nil)
	_ http.Hijacker = (*response)(nil)
)

func newResponse(s *Session, x *exchange, req *http.Request) *response {
	return &response{s: s, x: x, head: req.Method == http.MethodHead, header: http.Header{}, length: -1}
}

// taken says that the stream belongs to somebody else now.
func (w *response) taken() bool { return w.hijacked || w.parked }

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status != 0 || w.taken() {
		return
	}
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		return // interim answers have no use between our own processes
	}
	w.status = status
	if v := w.header.Get("Content-Length"); v != "" {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
			w.length = n
		} else {
			w.header.Del("Content-Length")
		}
	}
}

func (w *response) bodyAllowed() bool {
	return w.status >= 200 && w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

func (w *response) Write(p []byte) (int, error) {
	if w.taken() {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.bodyAllowed() {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if w.head {
		return len(p), nil
	}
	if !w.sent {
		if len(w.held)+len(p) <= holdUpTo {
			w.held = append(w.held, p...)
			return len(p), nil
		}
		if err := w.sendHeader(false); err != nil {
			return 0, err
		}
	}
	if err := w.writeBody(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sendHeader writes the header and what was held. whole says that nothing follows.
func (w *response) sendHeader(whole bool) error {
	w.sent = true
	w.bw = writers.Get().(*bufio.Writer)
	w.bw.Reset(w.x.st)
	switch {
	case !w.bodyAllowed():
		w.header.Del("Transfer-Encoding")
	case w.length >= 0:
	case whole && !w.head:
		w.header.Set("Content-Length", strconv.Itoa(len(w.held)))
	case !whole || w.head:
		w.chunked = true
		w.header.Set("Transfer-Encoding", "chunked")
	}
	if len(w.held) > 0 && w.header.Get("Content-Type") == "" && w.header.Get("Content-Encoding") == "" {
		w.header.Set("Content-Type", http.DetectContentType(w.held))
	}
	if w.status != http.StatusSwitchingProtocols {
		w.header.Del("Connection") // a stream has one request
	}
	_, _ = fmt.Fprintf(w.bw, "HTTP/1.1 %03d %s\r\n", w.status, http.StatusText(w.status))
	if err := w.header.Write(w.bw); err != nil {
		return err
	}
	_, _ = w.bw.WriteString("\r\n")
	held := w.held
	w.held = nil
	return w.writeBody(held)
}

func (w *response) writeBody(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if !w.chunked {
		_, err := w.bw.Write(p)
		return err
	}
	_, _ = w.bw.WriteString(strconv.FormatInt(int64(len(p)), 16))
	_, _ = w.bw.WriteString("\r\n")
	_, _ = w.bw.Write(p)
	_, err := w.bw.WriteString("\r\n")
	return err
}

// Flush sends what was written so far.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	if w.taken() {
		return http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		if err := w.sendHeader(false); err != nil {
			return err
		}
	}
	return w.bw.Flush()
}

// SetWriteDeadline is for http.ResponseController.
func (w *response) SetWriteDeadline(t time.Time) error { return w.x.st.SetWriteDeadline(t) }

// Hijack gives the stream away as plain bytes.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.taken() {
		return nil, nil, http.ErrHijacked
	}
	if w.sent {
		return nil, nil, errors.New("hijack stream: the answer has begun")
	}
	w.x.detach()
	w.hijacked = true
	conn := &rawConn{Stream: w.x.st, br: w.x.br}
	return conn, bufio.NewReadWriter(w.x.br, bufio.NewWriterSize(conn, 4096)), nil
}

// fail drops the answer, so that the other side sees a stream that ended too early.
func (w *response) fail() { w.failed = true }

// finish completes the answer.
func (w *response) finish() error {
	defer w.release()
	if w.failed {
		if w.sent {
			_ = w.bw.Flush()
		}
		return nil
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		if err := w.sendHeader(true); err != nil {
			return err
		}
	}
	if !w.head && w.bodyAllowed() && w.length >= 0 && w.written < w.length {
		_ = w.bw.Flush()
		return fmt.Errorf("answer has %d of %d bytes: %w", w.written, w.length, io.ErrShortWrite)
	}
	if w.chunked && !w.head {
		_, _ = w.bw.WriteString("0\r\n\r\n")
	}
	return w.bw.Flush()
}

func (w *response) release() {
	if w.bw != nil {
		w.bw.Reset(nil)
		writers.Put(w.bw)
		w.bw = nil
	}
}
