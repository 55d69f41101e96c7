package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// fetchTimeout bounds the download of a jobspec.
	fetchTimeout = 30 * time.Second
	// maxFetched is one byte more than a jobspec may have, so that the parser tells what is too large.
	maxFetched = 16<<20 + 1
)

// readJobspec gives the text of a jobspec: "-" is standard input, an address by http or https is fetched, all else is a
// file.
func readJobspec(ctx context.Context, c *call, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(c.in)
	}
	body, err := os.ReadFile(path)
	switch {
	case err == nil:
		return body, nil
	case strings.HasPrefix(path, "http://"), strings.HasPrefix(path, "https://"):
		return fetch(ctx, path)
	case isAddress(path):
		return nil, fmt.Errorf("cannot read jobspec: %q is an address that is not fetched, only http:// and https:// are; "+
			"fetch the file first and give its path, or its text on standard input with the path -", path)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot read jobspec: there is no file %q", path)
	}
	return nil, fmt.Errorf("cannot read jobspec: %w", err)
}

func fetch(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch jobspec: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch jobspec: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch jobspec: %s answered %s", address, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched))
	if err != nil {
		return nil, fmt.Errorf("fetch jobspec: %w", err)
	}
	return body, nil
}

// isAddress says whether a path is meant for something to be fetched: a URL, or a source with a method (git::...).
func isAddress(path string) bool {
	return strings.Contains(path, "://") || strings.Contains(path, "::")
}
