package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/nomadlite/nomadlite/structs"
)

const (
	maxOutput    = 3 << 10
	maxRedirects = 5
)

// Spec is a check as it is asked.
type Spec struct {
	ID      string
	Check   structs.ServiceCheck // interpolated; not changed any more
	Service string
	Group   string // the name which the API shows
	Task    string // whose service it is, empty for the group's
	// On is the task that is asked, and that check_restart restarts. Empty means all main tasks of the allocation.
	On      string
	Address string // host:port; unused by scripts
}

// Prober asks a check; ctx ends with its timeout or when nobody waits for the answer any more.
type Prober interface {
	Probe(ctx context.Context, allocID string, s *Spec) Outcome
}

// Execer runs a command beside a task, and gives its exit code and the begin of its output.
type Execer interface {
	Exec(ctx context.Context, allocID, task string, command []string) (code int, output string, err error)
}

// ErrGone says that the task of a script does not run any more.
var ErrGone = errors.New("task does not run")

// Probes asks checks of all types.
type Probes struct{ Tasks Execer }

// Probe asks s.
func (p Probes) Probe(ctx context.Context, allocID string, s *Spec) Outcome {
	switch s.Check.Type {
	case structs.CheckTCP:
		return probeTCP(ctx, s)
	case structs.CheckHTTP:
		return probeHTTP(ctx, s)
	case structs.CheckGRPC:
		return probeGRPC(ctx, s)
	case structs.CheckScript:
		return p.script(ctx, allocID, s)
	}
	return failed(fmt.Errorf("no check of type %q can be run", s.Check.Type))
}

func failed(err error) Outcome {
	return Outcome{Verdict: Failed, Output: clip("nomad: " + err.Error())}
}

// clip cuts text to what is kept of it, between two characters.
func clip(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	cut := maxOutput
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

func probeTCP(ctx context.Context, s *Spec) Outcome {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return failed(err)
	}
	_ = conn.Close()
	return Outcome{Output: "nomad: tcp ok"}
}

func (s *Spec) tls() *tls.Config {
	return &tls.Config{InsecureSkipVerify: s.Check.TLSSkipVerify, ServerName: s.Check.TLSServerName} //nolint:gosec // asked for by the job
}

// probeHTTP asks with a connection of its own, which it closes. The environment's proxies are not for this.
func probeHTTP(ctx context.Context, s *Spec) Outcome {
	c := &s.Check
	scheme, method := "http", http.MethodGet
	if c.Protocol != "" {
		scheme = strings.ToLower(c.Protocol)
	}
	if c.Method != "" {
		method = strings.ToUpper(c.Method)
	}
	url := scheme + "://" + s.Address + "/" + strings.TrimPrefix(c.Path, "/")
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(c.Body))
	if err != nil {
		return failed(err)
	}
	req.Header.Set("User-Agent", "nomadlite-check")
	for name, values := range c.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
		if strings.EqualFold(name, "host") && len(values) > 0 {
			req.Host = values[0]
		}
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: s.tls(), DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("stopped after %d redirects", maxRedirects)
			}
			return nil
		},
	}
	resp, err := client.Do(req)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return Outcome{Output: "nomad: http ok", Code: resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	if err != nil && len(body) == 0 {
		return Outcome{Verdict: Failed, Output: clip("nomad: " + err.Error()), Code: resp.StatusCode}
	}
	return Outcome{Verdict: Failed, Output: clip(strings.ToValidUTF8(string(body), "?")), Code: resp.StatusCode}
}

// script follows the usual convention of exit codes: 0 passes, 1 warns, all others fail.
func (p Probes) script(ctx context.Context, allocID string, s *Spec) Outcome {
	code, output, err := p.Tasks.Exec(ctx, allocID, s.On, append([]string{s.Check.Command}, s.Check.Args...))
	output = clip(strings.ToValidUTF8(output, "?"))
	switch {
	case errors.Is(err, ErrGone):
		return Outcome{Void: true}
	case ctx.Err() != nil:
		return failed(fmt.Errorf("the command did not end within %s: %s", s.Check.Timeout, output))
	case err != nil:
		return failed(err)
	case code == 0:
		return Outcome{Output: output}
	case code == 1:
		return Outcome{Verdict: Warned, Output: output}
	}
	return Outcome{Verdict: Failed, Output: clip(fmt.Sprintf("exit code %d: %s", code, output))}
}

// Head keeps the begin of what is written to it. It is safe for concurrent use.
type Head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write never fails.
func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Write(p[:min(len(p), max(maxOutput-h.buf.Len(), 0))])
	return len(p), nil
}

// String is what was kept.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}
