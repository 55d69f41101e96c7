package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/internal/uuid"
)

// DataVersion is the layout of the data directory which this program writes. It rises when an older program could
// not read it any more.
const DataVersion = 1

const (
	versionFile = "VERSION"
	idFile      = "server-id"
)

// DataDir is a server's part of the agent's data directory.
type DataDir struct {
	Raft    string // log, stable store and snapshots
	Keyring string
	ID      string // this server's raft id, kept for ever
}

// KeyringDir is the folder of the key file.
func KeyringDir(dir string) string { return filepath.Join(dir, "keyring") }

// OpenDataDir checks the directory and makes what is missing. It fails with one line, before anything was changed,
// when the directory is of a newer version or cannot be written.
func OpenDataDir(dir string) (*DataDir, error) {
	if err := CheckVersion(dir); err != nil {
		return nil, err
	}
	d := &DataDir{Raft: filepath.Join(dir, "server", "raft"), Keyring: KeyringDir(dir)}
	if err := os.MkdirAll(d.Raft, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be written: %w", dir, cause(err))
	}
	probe, err := os.CreateTemp(d.Raft, ".write-test-*")
	if err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be written: %w", dir, cause(err))
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be written: %w", dir, cause(err))
	}
	if err := writeOnce(filepath.Join(dir, versionFile), strconv.Itoa(DataVersion)+"\n"); err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be written: %w", dir, cause(err))
	}
	path := filepath.Join(dir, "server", idFile)
	if err := writeOnce(path, uuid.New()+"\n"); err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be written: %w", dir, cause(err))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be read: %w", dir, cause(err))
	}
	if d.ID = strings.TrimSpace(string(raw)); d.ID == "" {
		return nil, fmt.Errorf("data_dir %s cannot be used: %s is empty", dir, path)
	}
	return d, nil
}

// CheckVersion refuses a data directory that was written by a newer program. It changes nothing.
func CheckVersion(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, versionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data_dir %s cannot be read: %w", dir, cause(err))
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return fmt.Errorf("data_dir %s cannot be used: its version %q is not a number", dir, strings.TrimSpace(string(raw)))
	}
	if version > DataVersion {
		return fmt.Errorf("data_dir %s was written by a newer version (layout %d, this program knows up to %d)",
			dir, version, DataVersion)
	}
	return nil
}

// writeOnce writes a small file unless it exists. It is there wholly or not at all.
func writeOnce(path, text string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return os.Rename(tmp.Name(), path)
}

// cause leaves the operation and path out, which the message names already.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
