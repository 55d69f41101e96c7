package state

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestAnOlderFileGetsNewTables: a table that a later binary of the same layout has is made in an older one's file, and what
// is there stays.
func TestAnOlderFileGetsNewTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, path)
	db.Put(Node, "id", "n1", nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	bolt, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := bolt.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(Services)) }); err != nil {
		t.Fatal(err)
	}
	if err := bolt.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, path)
	db.Put(Services, "a1", "web", nil)
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	for bucket, want := range map[Bucket]string{Node: "n1", Services: "web"} {
		got := ""
		err := Each(db, bucket, func(_ string, v *string) { got = *v }, func(key string, err error) { t.Errorf("%s: %v", key, err) })
		if err != nil || got != want {
			t.Errorf("%s holds %q, %v", bucket, got, err)
		}
	}
}
