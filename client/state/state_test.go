package state

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestRowsSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client", "state.db")
	db := open(t, path)
	alloc := &structs.Allocation{ID: "a1", Namespace: "default", JobID: "web", JobModifyIndex: 7}
	db.Put(Allocs, alloc.ID, alloc, nil)
	db.Put(Tasks, TaskKey("a1", "t"), map[string]int{"n": 1}, nil)
	db.Put(Tasks, TaskKey("a1", "t"), map[string]int{"n": 2}, nil)
	db.Put(Tasks, TaskKey("a1", "gone"), map[string]int{"n": 3}, nil)
	db.Delete(Tasks, TaskKey("a1", "gone"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, path)
	seen := map[string]int{}
	err := Each(db, Tasks, func(key string, v *map[string]int) { seen[key] = (*v)["n"] }, func(string, error) {})
	if err != nil || fmt.Sprint(seen) != "map[a1/t:2]" {
		t.Fatalf("tasks %v, error %v", seen, err)
	}
	var got structs.Allocation
	if found, err := db.Get(Allocs, "a1", &got); !found || err != nil || got.JobModifyIndex != 7 {
		t.Fatalf("found %v, error %v, alloc %+v", found, err, got)
	}
	if found, err := db.Get(Allocs, "a2", &got); found || err != nil {
		t.Fatalf("found %v, error %v", found, err)
	}
}

func TestDoneMeansDurableAndInOrder(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "state.db"))
	var mu sync.Mutex
	var order []int
	for i := range 200 {
		db.Put(Runs, fmt.Sprint(i%7), i, func(err error) {
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
	}
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, n := range order {
		if i != n {
			t.Fatalf("order %v", order)
		}
	}
	if len(order) != 200 {
		t.Fatalf("%d done", len(order))
	}
	var last int
	if _, err := db.Get(Runs, fmt.Sprint(199%7), &last); err != nil || last != 199 {
		t.Fatalf("last %d, error %v", last, err)
	}
}

func TestNewerVersionIsRefusedAndUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	bolt, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = bolt.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(meta)).Put(versionKey, []byte{0, 0, 0, 0, 0, 0, 0, 9})
	})
	if err := errors.Join(err, bolt.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, Options{})
	if !errors.Is(err, ErrNewerVersion) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
		t.Fatalf("error %v", err)
	}
}

func TestSecondAgentIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path)
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "in use by another agent") {
		t.Fatalf("error %v", err)
	}
}

func TestWritesAfterCloseAreRefused(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "state.db"))
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := db.Sync(); !errors.Is(err, ErrClosed) {
		t.Fatalf("error %v", err)
	}
}

func TestDamagedRowIsLeftOut(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "state.db"))
	db.Put(Runs, "good", 1, nil)
	db.Put(Runs, "odd", "text", nil)
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	var good, bad []string
	err := Each(db, Runs, func(k string, _ *int) { good = append(good, k) }, func(k string, _ error) { bad = append(bad, k) })
	if err != nil || fmt.Sprint(good, bad) != "[good] [odd]" {
		t.Fatalf("good %v, bad %v, error %v", good, bad, err)
	}
}

// A full disk must not leave holes: what could not be written is written once there is room, whatever came between.
func TestWhatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, path)
	full, written := true, make(chan struct{}, 1)
	var mu sync.Mutex
	update := db.update
	db.update = func(f func(*bbolt.Tx) error) error {
		mu.Lock()
		defer mu.Unlock()
		if full {
			return errors.New("no space left on device")
		}
		defer func() { written <- struct{}{} }()
		return update(f)
	}
	told := make(chan error, 1)
	db.Put(Runs, "first", 1, nil)
	db.Put(Runs, "changed", 1, func(err error) { told <- err })
	if err := <-told; err == nil {
		t.Fatal("a write that failed was called durable")
	}
	db.Put(Runs, "changed", 2, func(err error) { told <- err })
	db.Put(Runs, "", 3, nil) // no database takes an empty key
	<-told
	mu.Lock()
	full = false
	mu.Unlock()
	<-written // it tries again by itself
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	var n int
	if found, err := db.Get(Runs, "first", &n); !found || err != nil {
		t.Fatalf("found %v, error %v", found, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, path)
	if _, err := db.Get(Runs, "changed", &n); err != nil || n != 2 {
		t.Fatalf("value %d, error %v", n, err)
	}
}

// Whatever a damaged file holds: one clear error that names it, no panic, and the file stays as it is.
func TestDamagedFileIsRefusedAndUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, path)
	for i := range 300 {
		db.Put(Runs, fmt.Sprint(i), strings.Repeat("x", 500), nil)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	cases := map[string][]byte{
		"text": []byte("hello"), "noise": noise(len(whole)), "cut off": whole[:5000], "holes, cut in half": whole[:len(whole)/2],
		"noise after the first pages": append(slices.Clone(whole[:16<<10]), noise(len(whole)-16<<10)...),
	}
	for seed := range 40 {
		data := slices.Clone(whole)
		for range 1 + seed%4 {
			copy(data[rnd.IntN(len(data)-4096):], noise(4096))
		}
		cases[fmt.Sprintf("holes %d", seed)] = data
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := Open(path, Options{})
			if err == nil { // what can be read is read
				for _, table := range buckets {
					if err = Each(db, table, func(string, *any) {}, func(string, error) {}); err != nil {
						break
					}
				}
				_ = db.Close()
			}
			if err != nil && (!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") || !errors.Is(err, ErrDamaged)) {
				t.Errorf("error %v", err)
			}
			if err == nil && !strings.HasPrefix(name, "holes") {
				t.Error("it was taken for whole")
			}
		})
	}
}
