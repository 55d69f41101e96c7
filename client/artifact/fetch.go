package artifact

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Names in the directory where a fetch works.
const (
	downloadName = tmpName + "/download"
	wholeName    = tmpName + "/whole"
)

// maxSums bounds a file of checksums, in bytes.
const maxSums = 1 << 20

// fetcher fills the working directory.
type fetcher struct {
	*Request
	stage *os.Root // the working directory
	http  *http.Client
}

// fetch does what the request asks for; the process is in the directory that it is to fill.
func fetch(ctx context.Context, req *Request) error {
	stage, err := os.OpenRoot(".")
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer stage.Close()
	f := &fetcher{Request: req, stage: stage, http: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: req.Insecure},
	}}}
	if err := stage.MkdirAll(tmpName, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	switch {
	case req.Source.By == byGit:
		err = f.git(ctx)
	case req.Source.By == byFile:
		err = f.file(ctx)
	default:
		err = f.download(ctx)
	}
	return err
}

// timed bounds what it calls; 0 is no bound.
func timed(ctx context.Context, limit time.Duration, what string, do func(context.Context) error) error {
	if limit <= 0 {
		return do(ctx)
	}
	cause := fmt.Errorf("%s took longer than the node's configuration allows (%s)", what, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
	defer cancel()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// download fetches one file by HTTP, and unpacks it if it is packed.
func (f *fetcher) download(ctx context.Context) error {
	if f.Source.name() == "" && f.Mode != structs.ArtifactModeFile {
		return final("source names no file: a directory can be fetched by HTTP only as an archive")
	}
	if err := f.unpackable(); err != nil {
		return err
	}
	err := timed(ctx, f.Settings.HTTPTimeout, "the download", func(ctx context.Context) error {
		want, err := f.wanted(ctx)
		if err != nil {
			return err
		}
		return f.save(want, func(w io.Writer) error { return f.get(ctx, f.Source.URL, w, f.Settings.HTTPMaxSize) })
	})
	if err != nil {
		return err
	}
	return f.unpack()
}

// save writes what is fetched to a file and compares its sum.
func (f *fetcher) save(want *sum, get func(io.Writer) error) error {
	out, err := f.stage.OpenFile(downloadName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	w := io.Writer(out)
	if want != nil {
		w = io.MultiWriter(out, want.hash)
	}
	err = errors.Join(get(w), out.Close())
	if err == nil && want != nil {
		err = want.check()
	}
	return err
}

// get writes the body that a URL answers with; more than limit bytes are an error, less than announced too.
func (f *fetcher) get(ctx context.Context, from string, w io.Writer, limit int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return final("source is no URL")
	}
	for k, v := range f.Headers {
		req.Header.Set(k, v)
		if strings.EqualFold(k, "Host") {
			req.Host = v
		}
	}
	resp, err := f.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL is said elsewhere, without its secrets
		}
		return fmt.Errorf("ask %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", req.URL.Host, resp.Status)
	}
	if limit > 0 && resp.ContentLength > limit {
		return fmt.Errorf("file has %d bytes, above %d: %w", resp.ContentLength, limit, errTooLarge)
	}
	body := io.Reader(resp.Body)
	if limit > 0 {
		body = io.LimitReader(body, limit+1)
	}
	n, err := io.Copy(w, body)
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if limit > 0 && n > limit {
		return fmt.Errorf("file is above %d bytes: %w", limit, errTooLarge)
	}
	return nil
}

// wanted is the sum that the file must have; nil when the block names none.
func (f *fetcher) wanted(ctx context.Context) (*sum, error) {
	text := f.Source.Checksum
	if text == "" {
		return nil, nil
	}
	from, ok := strings.CutPrefix(text, "file:")
	if !ok {
		s, err := parseSum(text)
		if err != nil {
			return nil, finalError{err}
		}
		return s, nil
	}
	var sums strings.Builder
	switch u, err := url.Parse(from); {
	case err == nil && (u.Scheme == "http" || u.Scheme == "https"):
		if err := f.get(ctx, from, &sums, maxSums); err != nil {
			return nil, fmt.Errorf("fetch checksums: %w", err)
		}
	case err == nil && path.IsAbs(u.Path) && (u.Scheme == "" || u.Scheme == "file"):
		if err := f.readHost(u.Path, &sums, maxSums); err != nil {
			return nil, fmt.Errorf("read checksums: %w", err)
		}
	default:
		return nil, final("checksum %q names no file of checksums", text)
	}
	name := path.Base(f.Source.URL)
	if u, err := url.Parse(f.Source.URL); err == nil {
		name = path.Base(u.Path)
	}
	return findSum(sums.String(), name)
}

// archive is the format of what is fetched; "" for none.
func (f *fetcher) archive() string {
	switch a := f.Source.Archive; {
	case a == "-":
		return ""
	case a != "":
		return a
	}
	name := f.Source.URL
	if u, err := url.Parse(name); err == nil {
		name = u.Path
	}
	return extension(name)
}

// unpackable refuses what can be no directory before it is fetched.
func (f *fetcher) unpackable() error {
	packed := formats()[f.archive()]
	tree := packed.zip || packed.tar
	if f.Mode == structs.ArtifactModeDir && !tree {
		return final("mode dir needs an archive (%s) or a repository; source is one file", "zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst")
	}
	if f.Source.Subdir != "" && !tree {
		return final("path %q behind // needs an archive or a repository; source is one file", f.Source.Subdir)
	}
	return nil
}

// unpack makes of the downloaded file what is to lie in the destination.
func (f *fetcher) unpack() error {
	ext := f.archive()
	packed, ok := formats()[ext]
	if !ok {
		return f.keepFile(downloadName)
	}
	file, err := f.stage.Open(downloadName)
	if err != nil {
		return fmt.Errorf("open download: %w", err)
	}
	defer file.Close()
	s, err := f.newSink()
	if err != nil {
		return err
	}
	defer s.root.Close()
	if packed.zip {
		err = s.unzip(file)
	} else {
		var content io.Reader
		if content, err = packed.open(file); err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if !packed.tar {
			name := strings.TrimSuffix(f.Source.name(), "."+ext)
			if name == "" {
				name = "unpacked"
			}
			if err := s.put(entry{name: name, mode: 0o644}, content); err != nil {
				return err
			}
			return f.keepFile(wholeName + "/" + name)
		}
		err = s.untar(content)
	}
	if err != nil {
		return err
	}
	return f.keepTree()
}

// keepFile makes one file the result.
func (f *fetcher) keepFile(from string) error {
	name := f.Name
	if f.Mode != structs.ArtifactModeFile {
		if name = path.Base(from); from == downloadName {
			name = f.Source.name()
		}
	}
	if err := f.stage.Mkdir(outName, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := f.stage.Rename(from, outName+"/"+name); err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	return nil
}

// keepTree makes the unpacked tree, or the part of it that is meant, the result; in mode file it must be one file.
func (f *fetcher) keepTree() error {
	from, err := f.part()
	if err != nil {
		return err
	}
	info, err := f.stage.Lstat(from)
	if err != nil {
		return fmt.Errorf("look at what was fetched: %w", err)
	}
	if f.Mode == structs.ArtifactModeFile {
		if info.IsDir() {
			if from, err = f.only(from); err != nil {
				return err
			}
		}
		return f.keepFile(from)
	}
	if !info.IsDir() {
		if f.Mode == structs.ArtifactModeDir {
			return final("mode dir: %q behind // is no directory", f.Source.Subdir)
		}
		return f.keepFile(from)
	}
	if err := f.stage.Rename(from, outName); err != nil {
		return fmt.Errorf("keep directory: %w", err)
	}
	return nil
}

// part is the path of what is meant of the whole. It may be a pattern that one path matches.
func (f *fetcher) part() (string, error) {
	if f.Source.Subdir == "" || f.Source.Subdir == "." {
		return wholeName, nil
	}
	found, err := fs.Glob(f.stage.FS(), wholeName+"/"+f.Source.Subdir)
	switch {
	case err != nil:
		return "", final("path %q behind // is no pattern: %w", f.Source.Subdir, err)
	case len(found) == 0:
		return "", fmt.Errorf("there is no %q in what was fetched", f.Source.Subdir)
	case len(found) > 1:
		return "", fmt.Errorf("%q matches several paths in what was fetched", f.Source.Subdir)
	}
	info, err := f.stage.Lstat(found[0])
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = errors.New("it is neither file nor directory")
	}
	if err != nil {
		return "", fmt.Errorf("look at %q: %w", f.Source.Subdir, err)
	}
	return found[0], nil
}

// only is the one regular file below a directory.
func (f *fetcher) only(dir string) (string, error) {
	found := ""
	err := fs.WalkDir(f.stage.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case found != "" || !d.Type().IsRegular():
			return final("mode file: source holds more than one file")
		}
		found = p
		return nil
	})
	if err == nil && found == "" {
		err = final("mode file: source holds no file")
	}
	return found, err
}
