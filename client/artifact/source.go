package artifact

import (
	"net/url"
	"path"
	"strconv"
	"strings"

	getter "github.com/hashicorp/go-getter/v2"

	"github.com/nomadlite/nomadlite/structs"
)

// The ways to fetch.
const (
	byHTTP = "http"
	byGit  = "git"
	byFile = "file"
)

// supported is what errors offer instead.
const supported = "http, https and git are fetched, and file where the node's configuration shows it"

// Source is a read source with its options.
type Source struct {
	By       string // how to fetch: http, git or file
	URL      string // with credentials; of a file the path
	Subdir   string // what of the whole is meant; "" is all of it
	Archive  string // "" goes by the name, "-" is none, else an extension
	Checksum string
	Filename string // instead of the URL's
	Ref      string // of git
	Depth    int    // of git; 0 is all
	SSHKey   string // of git, in base64
}

// parseSource reads a source as go-getter would, whose language it is: a forced getter (git::), shorthands of known
// hosts, a path of a part behind //, and options in the query. It does no I/O.
func parseSource(text string, options map[string]string) (*Source, error) {
	s := &Source{}
	from, err := s.detect(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	from, s.Subdir = getter.SourceDirSubdir(from)
	if s.Subdir != "" {
		if s.Subdir = strings.Trim(path.Clean(s.Subdir), "/"); s.Subdir == ".." || strings.HasPrefix(s.Subdir, "../") {
			return nil, structs.Errorf(structs.CodeInvalid, "path %q behind // leads out of what is fetched", s.Subdir)
		}
	}
	u, err := url.Parse(from)
	if err != nil {
		return nil, structs.Errorf(structs.CodeInvalid, "source is no URL") // the error itself would show credentials
	}
	if err := s.options(u, options); err != nil {
		return nil, err
	}
	return s, s.check(u)
}

// detect finds out how to fetch, and gives the URL with shorthands written out.
func (s *Source) detect(text string) (from string, err error) {
	// Of its detectors the one for Bitbucket is left out: it asks the host what it is.
	text, query, queried := strings.Cut(text, "?") // which its detectors take for a part of the path
	if queried {
		defer func() { from += "?" + query }()
	}
	git := &getter.GitGetter{Detectors: []getter.Detector{new(getter.GitHubDetector), new(getter.GitDetector), new(getter.GitLabDetector)}}
	req := &getter.Request{Src: text}
	if ok, err := getter.Detect(req, git); err != nil {
		return "", structs.Errorf(structs.CodeInvalid, "read source: %w", err)
	} else if ok {
		s.By = byGit
		return req.Src, nil
	}
	if strings.HasPrefix(text, "bitbucket.org/") {
		s.By = byGit
		return "https://" + text, nil
	}
	forced, rest, ok := strings.Cut(text, "::")
	if !ok || strings.ContainsAny(forced, "/:?") {
		forced, rest = "", text
	}
	scheme, _, ok := strings.Cut(rest, "://")
	if !ok {
		scheme = ""
	}
	by := forced
	if by == "" {
		by = strings.ToLower(scheme)
	}
	switch {
	case (by == "http" || by == "https") && (scheme == "http" || scheme == "https"):
		s.By = byHTTP
	case by == byFile && (scheme == "" || scheme == byFile), by == "" && strings.HasPrefix(rest, "/"):
		s.By = byFile
	case by == "":
		return "", structs.Errorf(structs.CodeInvalid, "source does not say how to fetch it, such as https:// or git::; %s", supported)
	default:
		return "", structs.Errorf(structs.CodeInvalid, "%q is no way to fetch a source that this node has: %s", by, supported)
	}
	return rest, nil
}

// options takes what is meant for us out of the query, to which the block's options are added first.
func (s *Source) options(u *url.URL, options map[string]string) error {
	q := u.Query()
	for k, v := range options {
		q.Set(k, v)
	}
	changed := len(options) > 0
	take := func(key string) string {
		v := q.Get(key)
		changed = changed || q.Has(key)
		q.Del(key)
		return v
	}
	s.Archive, s.Checksum, s.Filename = take("archive"), strings.TrimSpace(take("checksum")), take("filename")
	if off, err := strconv.ParseBool(s.Archive); err == nil {
		s.Archive = ""
		if !off {
			s.Archive = "-"
		}
	}
	if s.By == byGit {
		s.Ref, s.SSHKey = take("ref"), take("sshkey")
		if depth := take("depth"); depth != "" {
			n, err := strconv.Atoi(depth)
			if err != nil || n < 0 {
				return structs.Errorf(structs.CodeInvalid, "depth %q is no number of commits", depth)
			}
			s.Depth = n
		}
	}
	if changed { // else a signed query stays as it is, byte by byte
		u.RawQuery = q.Encode()
	}
	s.URL = u.String()
	return nil
}

func (s *Source) check(u *url.URL) error {
	if s.By == byFile {
		if s.URL = u.Path; !path.IsAbs(s.URL) {
			return structs.Errorf(structs.CodeInvalid, "path %q of a file is not absolute", s.URL)
		}
	}
	switch {
	case strings.HasPrefix(s.Ref, "-") || strings.HasPrefix(s.URL, "-"):
		return structs.Errorf(structs.CodeInvalid, "neither a source of git nor a ref may begin with a dash")
	case s.By == byHTTP && u.Host == "":
		return structs.Errorf(structs.CodeInvalid, "source names no host")
	case s.Filename != "" && s.Filename != path.Base(s.Filename) || s.Filename == "." || s.Filename == "..":
		return structs.Errorf(structs.CodeInvalid, "filename %q is not the name of a file", s.Filename)
	case s.Archive != "" && s.Archive != "-" && formats()[s.Archive].open == nil && !formats()[s.Archive].zip:
		return structs.Errorf(structs.CodeInvalid, "archive %q is no format that can be unpacked", s.Archive)
	case s.By == byGit && s.Checksum != "":
		return structs.Errorf(structs.CodeInvalid, "checksum is of one file, which a repository is not: name a commit by ref instead")
	}
	return nil
}

// name is what the fetched file is called unless the block says otherwise.
func (s *Source) name() string {
	if s.Filename != "" {
		return s.Filename
	}
	p := s.URL
	if s.By != byFile {
		if u, err := url.Parse(s.URL); err == nil {
			p = u.Path
		}
	}
	if strings.HasSuffix(p, "/") {
		return ""
	}
	if name := path.Base(p); name != "." && name != "/" && name != ".." {
		return name
	}
	return ""
}

// shown is the URL without what may be secret.
func (s *Source) shown() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.By
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// secrets are the words of a source that no error may show.
func (s *Source) secrets() []string {
	out := []string{s.SSHKey}
	if u, err := url.Parse(s.URL); err == nil {
		if password, ok := u.User.Password(); ok {
			out = append(out, password, url.QueryEscape(password), url.PathEscape(password),
				strings.TrimPrefix(url.UserPassword("", password).String(), ":"))
		} else if u.User != nil && s.By != byGit || strings.HasPrefix(u.Scheme, "http") && u.User.Username() != "git" {
			out = append(out, u.User.Username()) // a token, as often as not
		}
		if u.RawQuery != "" {
			out = append(out, u.RawQuery)
		}
	}
	return out
}
