package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nomadlite/nomadlite/internal/uuid"
)

// The files in which a node keeps who it is, in StateDir.
const (
	nodeIDFile = "client-id"
	secretFile = "secret-id"
)

// identity reads the node's id and secret, or makes them at the node's first start.
func identity(stateDir string) (id, secret string, err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return "", "", fmt.Errorf("make state_dir: %w", err)
	}
	if id, err = readOrMake(filepath.Join(stateDir, nodeIDFile)); err != nil {
		return "", "", err
	}
	secret, err = readOrMake(filepath.Join(stateDir, secretFile))
	return id, secret, err
}

func readOrMake(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		if value := strings.TrimSpace(string(data)); value != "" {
			return value, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read node identity: %w", err)
	}
	value := uuid.New()
	// Written aside and renamed: a crash leaves either no file or a whole one.
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(value), 0o600); err != nil {
		return "", fmt.Errorf("write node identity: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return "", fmt.Errorf("write node identity: %w", err)
	}
	return value, nil
}
