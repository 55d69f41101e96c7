package command

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEscapeReader(t *testing.T) {
	for _, tt := range []struct {
		in, out string
		escaped bool
	}{
		{"ls\r~.more", "ls\r", true},
		{"~.", "", true},
		{"a~.\r", "a~.\r", false}, // not at the beginning of a line
		{"~~.\r", "~.\r", false},  // the character itself
		{"~a\r~\r~.", "~a\r~\r", true},
		{"\n~.", "\n", true},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader} {
			escaped := false
			r := &escapeReader{in: wrap(strings.NewReader(tt.in)), char: '~', lineStart: true, escaped: func() { escaped = true }}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != tt.out || escaped != tt.escaped {
				t.Errorf("%q by %s: %q, escaped %t, %v", tt.in, name, got, escaped, err)
			}
		}
	}
}
