package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func written(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	state := strings.Repeat("the state of a cluster ", 100)
	meta := Meta{Version: 1, ID: "2-7-1", Index: 7, Term: 2, Size: int64(len(state)), Created: time.Unix(1000, 0)}
	if err := Write(&out, meta, strings.NewReader(state)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	var state []byte
	meta, err := Read(bytes.NewReader(written(t)), func(r io.Reader) (err error) {
		state, err = io.ReadAll(r)
		return err
	})
	if err != nil || meta.Index != 7 || meta.Term != 2 || meta.ID != "2-7-1" || !meta.Created.Equal(time.Unix(1000, 0)) {
		t.Fatalf("%+v, %v", meta, err)
	}
	if !strings.HasPrefix(string(state), "the state of a cluster") || int64(len(state)) != meta.Size {
		t.Fatalf("%d bytes", len(state))
	}
}

// Every prefix of an archive and every archive with one byte changed is refused, whatever its reader takes of it.
func TestCutOffAndDamagedArchivesAreRefused(t *testing.T) {
	whole := written(t)
	refuse := func(what string, at int, archive []byte) {
		t.Helper()
		for _, take := range []int64{0, 1 << 20} {
			_, err := Read(bytes.NewReader(archive), func(r io.Reader) error {
				_, err := io.CopyN(io.Discard, r, take)
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			})
			if err == nil || structs.ErrorCode(err) != structs.CodeInvalid {
				t.Fatalf("%s at %d of %d was taken: %v", what, at, len(whole), err)
			}
		}
	}
	for n := range whole {
		refuse("cut off", n, whole[:n])
	}
	refuse("longer", 0, append(bytes.Clone(whole), 0))
	const header = 10 // of gzip, whose time and system do not matter
	for i := header; i < len(whole); i++ {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x20
		if bytes.Equal(unzipped(changed), unzipped(whole)) {
			continue // a bit of the compression that says nothing
		}
		refuse("changed", i, changed)
	}
}

func unzipped(archive []byte) []byte {
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil
	}
	content, err := io.ReadAll(zip)
	if err != nil {
		return nil
	}
	return content
}

func TestAStateThatCannotBeReadIsTheError(t *testing.T) {
	_, err := Read(bytes.NewReader(written(t)), func(io.Reader) error { return errors.New("no such table") })
	if err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Fatal(err)
	}
}
