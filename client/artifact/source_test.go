package artifact

import (
	"strings"
	"testing"
)

func TestSources(t *testing.T) {
	for text, want := range map[string]Source{
		"https://a.test/x.zip":                          {By: "http", URL: "https://a.test/x.zip"},
		"http::https://a.test/x":                        {By: "http", URL: "https://a.test/x"},
		"https://a.test/x.zip?sig=%2f&a=1":              {By: "http", URL: "https://a.test/x.zip?sig=%2f&a=1"}, // signed: as it is
		"https://a.test/x?archive=false&b=2":            {By: "http", URL: "https://a.test/x?b=2", Archive: "-"},
		"https://a.test/x?archive=zip":                  {By: "http", URL: "https://a.test/x", Archive: "zip"},
		"https://a.test/x.tgz//sub/dir?checksum=md5:00": {By: "http", URL: "https://a.test/x.tgz", Subdir: "sub/dir", Checksum: "md5:00"},
		"https://u:p@a.test/x?filename=y":               {By: "http", URL: "https://u:p@a.test/x", Filename: "y"},
		"github.com/o/r":                                {By: "git", URL: "https://github.com/o/r.git"},
		"github.com/o/r//part?ref=v1":                   {By: "git", URL: "https://github.com/o/r.git", Subdir: "part", Ref: "v1"},
		"gitlab.com/o/r":                                {By: "git", URL: "https://gitlab.com/o/r.git"},
		"bitbucket.org/o/r":                             {By: "git", URL: "https://bitbucket.org/o/r"},
		"git::https://a.test/r?ref=main&depth=1":        {By: "git", URL: "https://a.test/r", Ref: "main", Depth: 1},
		"git::git@a.test:o/r":                           {By: "git", URL: "ssh://git@a.test/o/r"},
		"git@a.test:o/r":                                {By: "git", URL: "ssh://git@a.test/o/r"},
		"git::ssh://git@a.test:22/o/r":                  {By: "git", URL: "ssh://git@a.test:22/o/r"},
		"file:///srv/x.zip":                             {By: "file", URL: "/srv/x.zip"},
		"file::/srv/x":                                  {By: "file", URL: "/srv/x"},
		"/srv/a b":                                      {By: "file", URL: "/srv/a b"},
	} {
		got, err := parseSource(text, nil)
		if err != nil || *got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestSourcesThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"s3::https://s3.amazonaws.com/b/k":     `"s3" is no way to fetch a source that this node has: http, https and git`,
		"s3://b/k":                             `"s3" is no way`,
		"gcs::https://www.googleapis.com/b/k":  `"gcs" is no way`,
		"hg::https://a.test/r":                 `"hg" is no way`,
		"http::ftp://a.test/r":                 `"http" is no way`,
		"x.zip":                                "does not say how to fetch it",
		"":                                     "does not say how to fetch it",
		"https://a.test/x//../../etc":          "leads out of what is fetched",
		"https:///x":                           "names no host",
		"https://user:secret@a.test/%zz":       "source is no URL",
		"https://a.test/x?filename=../y":       "not the name of a file",
		"https://a.test/x?archive=rar":         "no format that can be unpacked",
		"git::https://a.test/r?depth=x":        "no number of commits",
		"git::https://a.test/r?ref=--upload":   "may begin with a dash",
		"git::https://a.test/r?checksum=md5:0": "name a commit by ref instead",
	} {
		_, err := parseSource(text, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestOptionsJoinTheQuery(t *testing.T) {
	got, err := parseSource("https://a.test/x.zip?a=1&checksum=md5:0", map[string]string{"checksum": "sha1:1", "b": "2", "archive": "false"})
	if err != nil || *got != (Source{By: "http", URL: "https://a.test/x.zip?a=1&b=2", Checksum: "sha1:1", Archive: "-"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.test/d/x%20y.txt?z=1":    "x y.txt",
		"https://a.test/":                   "",
		"https://a.test":                    "",
		"https://a.test/d/":                 "",
		"https://a.test/x?filename=program": "program",
		"/srv/x":                            "x",
	} {
		s, err := parseSource(text, nil)
		if err != nil || s.name() != want {
			t.Errorf("%s: %q, %v; want %q", text, s.name(), err, want)
		}
	}
}

func TestNothingSecretIsShown(t *testing.T) {
	s, err := parseSource("https://user:pass%2Fword%21@a.test/x?token=abc", nil)
	if err != nil || s.shown() != "https://a.test/x" {
		t.Fatalf("%q %v", s.shown(), err)
	}
	it := &item{hidden: s.secrets()}
	text := it.censor(errorsOf("ask https://user:pass%2Fword%21@a.test/x?token=abc: pass/word! is wrong")).Error()
	if strings.Contains(text, "word") || strings.Contains(text, "abc") {
		t.Errorf("%s", text)
	}
}

type errorsOf string

func (e errorsOf) Error() string { return string(e) }

func TestPaths(t *testing.T) {
	p, err := ParsePath("d:rx:/opt/bin:2")
	if err != nil || p != (Path{Name: "/opt/bin:2", Dir: true, Read: true, Execute: true}) {
		t.Errorf("%+v %v", p, err)
	}
	for _, bad := range []string{"", "f:r", "x:r:/a", "f:q:/a", "f:r:a"} {
		if _, err := ParsePath(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

const sha1Of = "a9993e364706816aba3e25717850c26c9cd0d89d" // of "abc"

func TestChecksums(t *testing.T) {
	for text, ok := range map[string]bool{
		"sha1:" + sha1Of: true, "SHA1:" + strings.ToUpper(sha1Of): true, sha1Of: true,
		"md5:900150983cd24fb0d6963f7d28e17f72":                                    true,
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad": true,
		"md5:900150983cd24fb0d6963f7d28e17f73":                                    false,
	} {
		s, err := parseSum(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, _ = s.hash.Write([]byte("abc"))
		if err := s.check(); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, bad := range []string{"", "crc:00", "sha1:00", "md5:zz0150983cd24fb0d6963f7d28e17f72", "abc"} {
		if _, err := parseSum(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestFilesOfChecksums(t *testing.T) {
	other := strings.Repeat("0", 40)
	for name, sums := range map[string]string{
		"GNU": other + "  y\n" + sha1Of + "  x\n", "binary": sha1Of + " *x\n", "BSD": "SHA1 (y) = " + other + "\nSHA1 (./x) = " + sha1Of,
		"alone": sha1Of, "comment": "# sums\n\n" + sha1Of + "  dist/x",
	} {
		if s, err := findSum(sums, "x"); err != nil || s.want != sha1Of {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
	if _, err := findSum(other+"  y\n<html>", "x"); err == nil {
		t.Error("found one for another file")
	}
}
