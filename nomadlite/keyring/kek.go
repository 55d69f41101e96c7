package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// fileName is the key file's name in the keyring's folder.
const fileName = "kek.json"

// kek is the key-encryption key which all servers of a cluster share.
type kek struct {
	ID  string `json:"id"`
	Key []byte `json:"key"` // 32 bytes
}

func newKEK(id string) *kek {
	k := &kek{ID: id, Key: make([]byte, 32)}
	rand.Read(k.Key) // crypto/rand.Read never fails
	return k
}

func parseKEK(data []byte) (*kek, error) {
	k := &kek{}
	if err := json.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	if k.ID == "" || len(k.Key) != 32 {
		return nil, errors.New("read key file: not a key of 32 bytes with an id")
	}
	return k, nil
}

func (k *kek) bytes() ([]byte, error) { return json.Marshal(k) }

// loadKEK reads the key file of dir; nil when there is none.
func loadKEK(dir string) (*kek, error) {
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	return parseKEK(data)
}

// save writes the key file so that it is there wholly or not at all, also after a crash.
func (k *kek) save(dir string) error {
	data, err := k.bytes()
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	tmp, err := os.CreateTemp(dir, fileName+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	defer os.Remove(tmp.Name()) // gone already after the rename
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, fileName)); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

func (k *kek) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.Key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal encrypts plain so that it opens only under the same name.
func (k *kek) seal(name string, plain []byte) (sealed, nonce []byte, err error) {
	aead, err := k.aead()
	if err != nil {
		return nil, nil, fmt.Errorf("seal root key: %w", err)
	}
	nonce = make([]byte, aead.NonceSize())
	rand.Read(nonce) // crypto/rand.Read never fails
	return aead.Seal(nil, nonce, plain, []byte(name)), nonce, nil
}

func (k *kek) open(name string, sealed, nonce []byte) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, fmt.Errorf("open root key %s: %w", name, err)
	}
	if len(nonce) != aead.NonceSize() {
		return nil, fmt.Errorf("open root key %s: nonce has %d bytes", name, len(nonce))
	}
	plain, err := aead.Open(nil, nonce, sealed, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("open root key %s: %w", name, err)
	}
	return plain, nil
}
