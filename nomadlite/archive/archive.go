package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Names of the parts.
const (
	metaName  = "meta.json"
	stateName = "state.bin"
	sumsName  = "SHA256SUMS"
)

// maxPart bounds meta.json and SHA256SUMS, in bytes.
const maxPart = 1 << 20

// Meta says what a snapshot is.
type Meta struct {
	Version int // of raft's form of a snapshot
	ID      string
	Index   uint64 // raft index of the newest entry that is in it
	Term    uint64
	Size    int64     // of state.bin, in bytes
	Created time.Time // kept as the time of meta.json
}

// Write writes an archive. state holds exactly meta.Size bytes.
func Write(w io.Writer, meta Meta, state io.Reader) error {
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	var sums bytes.Buffer
	add := func(name string, size int64, content io.Reader) error {
		header := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: meta.Created, Format: tar.FormatPAX}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		digest := sha256.New()
		n, err := io.Copy(io.MultiWriter(out, digest), content)
		if err == nil && n != size {
			err = fmt.Errorf("it has %d bytes, not %d", n, size)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", digest.Sum(nil), name)
		return nil
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("write %s: %w", metaName, err)
	}
	if err := add(metaName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	if err := add(stateName, meta.Size, state); err != nil {
		return err
	}
	text = bytes.Clone(sums.Bytes())
	if err := add(sumsName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// Read reads an archive to its end. state is handed state.bin; when it gives an error, that is the error. An archive
// that is cut off, damaged or none at all is refused with structs.CodeInvalid.
func Read(r io.Reader, state func(io.Reader) error) (Meta, error) {
	rd := reader{sums: map[string]hash.Hash{}, state: state}
	if err := rd.read(r); err != nil {
		return Meta{}, fmt.Errorf("read snapshot archive: %w", err)
	}
	return rd.meta, nil
}

type reader struct {
	meta  Meta
	sums  map[string]hash.Hash // of what was read, by part
	want  []byte               // SHA256SUMS
	state func(io.Reader) error
}

func damaged(format string, args ...any) error {
	return structs.Errorf(structs.CodeInvalid, format, args...)
}

func (rd *reader) read(r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	zip, err := gzip.NewReader(buffered)
	if err != nil {
		return damaged("it is no gzipped tar archive: %w", err)
	}
	zip.Multistream(false)
	in := tar.NewReader(zip)
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged("it is cut off or damaged: %w", err)
		}
		if err := rd.part(entry, in); err != nil {
			return err
		}
	}
	// The checksum of gzip comes after the last part.
	if _, err := io.Copy(io.Discard, zip); err != nil {
		return damaged("it is cut off or damaged: %w", err)
	}
	if _, err := buffered.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("something follows its end")
	}
	return rd.verify()
}

func (rd *reader) part(entry *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(entry.Name, "./")
	if rd.sums[name] != nil || name == sumsName && rd.want != nil {
		return damaged("it has %s twice", name)
	}
	digest := sha256.New()
	from := io.TeeReader(content, digest)
	switch name {
	case metaName, sumsName:
		text, err := io.ReadAll(io.LimitReader(from, maxPart+1))
		if err != nil {
			return damaged("it is cut off or damaged in %s: %w", name, err)
		}
		if len(text) > maxPart {
			return damaged("%s is larger than %d bytes", name, maxPart)
		}
		if name == sumsName {
			rd.want = text
			return nil
		}
		if err := json.Unmarshal(text, &rd.meta); err != nil {
			return damaged("%s cannot be read: %w", name, err)
		}
		rd.meta.Created = entry.ModTime
	case stateName:
		if rd.sums[metaName] == nil {
			return damaged("%s does not come first", metaName)
		}
		if entry.Size != rd.meta.Size {
			return damaged("%s has %d bytes, but %s says %d", stateName, entry.Size, metaName, rd.meta.Size)
		}
		intact := &intactReader{r: from}
		if err := rd.state(intact); intact.err != nil {
			return damaged("it is cut off or damaged in %s: %w", name, intact.err)
		} else if err != nil {
			return structs.Errorf(structs.CodeInvalid, "%w", err)
		}
		if _, err := io.Copy(io.Discard, from); err != nil {
			return damaged("it is cut off or damaged in %s: %w", name, err)
		}
	default:
		return damaged("it has a part %q, which no snapshot has", entry.Name)
	}
	rd.sums[name] = digest
	return nil
}

// intactReader keeps the error that its reader may take for one of the state.
type intactReader struct {
	r   io.Reader
	err error
}

func (i *intactReader) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// verify compares the checksums of what was read with those that the archive names.
func (rd *reader) verify() error {
	listed := map[string]string{}
	for line := range strings.Lines(string(rd.want)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			listed[strings.TrimPrefix(fields[1], "./")] = strings.ToLower(fields[0])
		}
	}
	for _, name := range []string{metaName, stateName} {
		switch digest := rd.sums[name]; {
		case digest == nil:
			return damaged("it holds no %s", name)
		case listed[name] == "":
			return damaged("it holds no checksum of %s", name)
		case listed[name] != hex.EncodeToString(digest.Sum(nil)):
			return damaged("the checksum of %s is wrong", name)
		}
	}
	return nil
}
