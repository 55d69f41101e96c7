package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/nomadlite/nomadlite/structs"
)

// Origins of an offset, and the names of a task's outputs.
const (
	OriginStart = "start"
	OriginEnd   = "end"
	LogStdout   = "stdout"
	LogStderr   = "stderr"
)

// AllocFS are the calls about an allocation's files and logs.
type AllocFS struct{ client *Client }

// AllocFS gives the calls about an allocation's files and logs.
func (c *Client) AllocFS() *AllocFS { return &AllocFS{client: c} }

// LogOptions say what of a task's output is read.
type LogOptions struct {
	Task   string
	Type   string // LogStdout (also when empty) or LogStderr
	Follow bool
	Origin string // OriginStart (also when empty) or OriginEnd
	Offset int64  // bytes from the origin, backwards from the end
}

func fsPath(call, allocID string) string {
	return "/v1/client/fs/" + call + "/" + url.PathEscape(allocID)
}

// List gives the entries of a directory in the allocation's directory.
func (a *AllocFS) List(ctx context.Context, allocID, path string, q *QueryOptions) (
	[]*structs.AllocFileInfo, *QueryMeta, error,
) {
	var out []*structs.AllocFileInfo
	meta, err := a.client.get(ctx, fsPath("ls", allocID), q.with("path", path), &out)
	return out, meta, err
}

// Stat gives one file's or directory's facts.
func (a *AllocFS) Stat(ctx context.Context, allocID, path string, q *QueryOptions) (
	*structs.AllocFileInfo, *QueryMeta, error,
) {
	var out structs.AllocFileInfo
	meta, err := a.client.get(ctx, fsPath("stat", allocID), q.with("path", path), &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Cat opens a file's content. The caller closes it.
func (a *AllocFS) Cat(ctx context.Context, allocID, path string, q *QueryOptions) (io.ReadCloser, error) {
	return a.open(ctx, fsPath("cat", allocID), q.with("path", path))
}

// ReadAt opens up to limit bytes of a file from offset on. The caller closes it.
func (a *AllocFS) ReadAt(ctx context.Context, allocID, path string, offset, limit int64, q *QueryOptions) (
	io.ReadCloser, error,
) {
	q = q.with("path", path).with("offset", strconv.FormatInt(offset, 10)).with("limit", strconv.FormatInt(limit, 10))
	return a.open(ctx, fsPath("readat", allocID), q)
}

// Stream reads a file from an offset on and, with follow, what is appended to it, until ctx ends. The caller closes it.
func (a *AllocFS) Stream(ctx context.Context, allocID, path, origin string, offset int64, follow bool, q *QueryOptions) (
	*Frames, error,
) {
	if origin == "" {
		origin = OriginStart
	}
	q = q.with("path", path).with("origin", origin).with("offset", strconv.FormatInt(offset, 10)).
		with("follow", strconv.FormatBool(follow))
	body, err := a.open(ctx, fsPath("stream", allocID), q)
	if err != nil {
		return nil, err
	}
	return newFrames(body), nil
}

// Logs reads a task's output and, with Follow, what is written from now on, until the task is gone or ctx ends. The
// caller closes it.
func (a *AllocFS) Logs(ctx context.Context, allocID string, opts LogOptions, q *QueryOptions) (*Frames, error) {
	if opts.Type == "" {
		opts.Type = LogStdout
	}
	if opts.Origin == "" {
		opts.Origin = OriginStart
	}
	q = q.with("task", opts.Task).with("type", opts.Type).with("origin", opts.Origin).
		with("offset", strconv.FormatInt(opts.Offset, 10)).with("follow", strconv.FormatBool(opts.Follow))
	body, err := a.open(ctx, fsPath("logs", allocID), q)
	if err != nil {
		return nil, err
	}
	return newFrames(body), nil
}

func (a *AllocFS) open(ctx context.Context, path string, q *QueryOptions) (io.ReadCloser, error) {
	resp, err := a.client.Do(ctx, http.MethodGet, path, q.values(0), nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Frames reads a stream of frames: frame by frame with Next, or only the bytes with Read.
type Frames struct {
	body    io.ReadCloser
	decoder *json.Decoder
	rest    []byte
}

func newFrames(body io.ReadCloser) *Frames {
	return &Frames{body: body, decoder: json.NewDecoder(body)}
}

// Next waits for a frame that says something (heartbeats are dropped). It returns io.EOF at the end.
func (f *Frames) Next() (*structs.StreamFrame, error) {
	for {
		var frame structs.StreamFrame
		if err := f.decoder.Decode(&frame); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("read frame: %w", err)
		}
		if len(frame.Data) > 0 || frame.FileEvent != "" {
			return &frame, nil
		}
	}
}

// Read gives the frames' bytes.
func (f *Frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		frame, err := f.Next()
		if err != nil {
			return 0, err
		}
		f.rest = frame.Data
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close ends the stream.
func (f *Frames) Close() error { return f.body.Close() }
