package artifact

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path"
	"strings"
)

// sum is what a file has to hash to.
type sum struct {
	kind string
	hash hash.Hash
	want string // hex, lower case
}

// parseSum reads TYPE:HEX, or HEX alone, whose type goes by its length.
func parseSum(text string) (*sum, error) {
	kind, digits, ok := strings.Cut(text, ":")
	if !ok {
		kind, digits = map[int]string{32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}[len(text)], text
	}
	s := &sum{kind: strings.ToLower(kind), want: strings.ToLower(digits)}
	switch s.kind {
	case "md5":
		s.hash = md5.New()
	case "sha1":
		s.hash = sha1.New()
	case "sha256":
		s.hash = sha256.New()
	case "sha512":
		s.hash = sha512.New()
	default:
		return nil, fmt.Errorf("checksum %q is not of type md5, sha1, sha256 or sha512", text)
	}
	if raw, err := hex.DecodeString(s.want); err != nil || len(raw) != s.hash.Size() {
		return nil, fmt.Errorf("checksum %q is not %d hexadecimal digits", text, 2*s.hash.Size())
	}
	return s, nil
}

// errChecksum says that a file is not the one which was meant.
var errChecksum = errors.New("checksums did not match")

// check compares what was hashed by now.
func (s *sum) check() error {
	if got := hex.EncodeToString(s.hash.Sum(nil)); got != s.want {
		return fmt.Errorf("%w: expected %s %s, got %s", errChecksum, s.kind, s.want, got)
	}
	return nil
}

// findSum looks a file up in a file of checksums, GNU or BSD style. With a checksum alone in it, that is meant.
func findSum(sums, file string) (*sum, error) {
	for line := range strings.Lines(sums) {
		digits, kind, name, ok := sumLine(strings.TrimSpace(line))
		if !ok || name != "" && path.Base(name) != file {
			continue
		}
		if kind != "" {
			digits = kind + ":" + digits
		}
		if s, err := parseSum(digits); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("file of checksums has none for %q", file)
}

// sumLine reads "HEX  [*]NAME", "TYPE (NAME) = HEX" and "HEX".
func sumLine(line string) (digits, kind, name string, ok bool) {
	if line == "" || strings.HasPrefix(line, "#") {
		return "", "", "", false
	}
	if before, after, bsd := strings.Cut(line, ") = "); bsd {
		kind, name, ok = strings.Cut(before, " (")
		return after, kind, name, ok
	}
	digits, name, _ = strings.Cut(line, " ")
	return digits, "", strings.TrimLeft(strings.TrimSpace(name), "*?"), true
}
