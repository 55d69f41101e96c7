package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client talks to one agent.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client
}

// NewClient checks cfg and reads the TLS files it names; it opens no connection.
func NewClient(cfg Config) (*Client, error) {
	base, socket, err := cfg.baseURL()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, base: base, http: cfg.HTTPClient}
	if c.http != nil {
		return c, nil
	}
	tlsConfig, err := cfg.TLS.clientConfig()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
	}
	if socket != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	c.http = &http.Client{Transport: transport}
	return c, nil
}

// Address is the agent's address as it was configured.
func (c *Client) Address() string {
	if c.cfg.Address == "" {
		return DefaultAddress
	}
	return c.cfg.Address
}

// Region is the configured region, empty for the agent's own.
func (c *Client) Region() string { return c.cfg.Region }

// Namespace is the configured namespace, empty for the default one.
func (c *Client) Namespace() string { return c.cfg.Namespace }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do makes one request of the API. path is absolute and escaped, may hold a query, and params are added to it; body
// is sent as JSON unless it is nil or an io.Reader. An answer other than 2xx is returned as *Error. The caller closes
// the body.
func (c *Client) Do(ctx context.Context, method, path string, params url.Values, body any) (*http.Response, error) {
	req, err := c.newRequest(ctx, method, path, params, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call agent: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

func (c *Client) newRequest(ctx context.Context, method, path string, params url.Values, body any) (
	*http.Request, error,
) {
	target := *c.base
	rel, err := url.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("parse path: %w", err)
	}
	target.RawPath = c.base.EscapedPath() + rel.EscapedPath()
	target.Path = c.base.Path + rel.Path
	query := rel.Query()
	for key, values := range params {
		query[key] = append(query[key], values...)
	}
	c.setDefault(query, "region", c.cfg.Region)
	c.setDefault(query, "namespace", c.cfg.Namespace)
	target.RawQuery = query.Encode()

	reader, isJSON, err := encodeBody(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), reader)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for key, values := range c.cfg.Headers {
		req.Header[key] = append([]string(nil), values...)
	}
	if isJSON {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Token != "" {
		req.Header.Set("X-Nomad-Token", c.cfg.Token)
	}
	if user, password, _ := strings.Cut(c.cfg.HTTPAuth, ":"); c.cfg.HTTPAuth != "" {
		req.SetBasicAuth(user, password)
	}
	return req, nil
}

func (c *Client) setDefault(query url.Values, key, value string) {
	if value != "" && !query.Has(key) {
		query.Set(key, value)
	}
}

func encodeBody(body any) (reader io.Reader, isJSON bool, err error) {
	switch b := body.(type) {
	case nil:
		return nil, false, nil
	case io.Reader:
		return b, false, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, false, fmt.Errorf("encode request: %w", err)
	}
	return bytes.NewReader(text), true, nil
}

// decodeBody reads one JSON value into out; a nil out drops the body.
func decodeBody(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // an empty answer leaves out as it is
		}
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

// get reads path into out.
func (c *Client) get(ctx context.Context, path string, q *QueryOptions, out any) (*QueryMeta, error) {
	return c.query(ctx, http.MethodGet, path, q, nil, out)
}

// query makes a request that reads, with a body where the API wants one.
func (c *Client) query(ctx context.Context, method, path string, q *QueryOptions, in, out any) (*QueryMeta, error) {
	start := time.Now()
	resp, err := c.Do(ctx, method, path, q.values(c.cfg.WaitTime), in)
	if err != nil {
		return nil, err
	}
	meta := readQueryMeta(resp.Header)
	meta.RequestTime = time.Since(start)
	return meta, decodeBody(resp, out)
}

// write makes a request that changes something.
func (c *Client) write(ctx context.Context, method, path string, w *WriteOptions, in, out any) (*WriteMeta, error) {
	start := time.Now()
	resp, err := c.Do(ctx, method, path, w.values(), in)
	if err != nil {
		return nil, err
	}
	meta := &WriteMeta{LastIndex: parseIndex(resp.Header), RequestTime: time.Since(start)}
	return meta, decodeBody(resp, out)
}
