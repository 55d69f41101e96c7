package client

import (
	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// store is the runners' view of the state on disk.
type store struct{ db *state.DB }

var _ allocrunner.Store = store{}

func (s store) SaveRun(allocID string, l *allocrunner.Local, done func(error)) {
	s.db.Put(state.Runs, allocID, l, done)
}

func (s store) SaveTask(allocID, task string, l *taskrunner.Local, done func(error)) {
	s.db.Put(state.Tasks, state.TaskKey(allocID, task), l, done)
}

// records is everything that was on disk at start.
type records struct {
	allocs []*structs.Allocation
	jobs   map[string]*structs.Job
	runs   map[string]*allocrunner.Local
	tasks  map[string]*taskrunner.Local
}

// load reads all records. Rows that cannot be decoded are logged and left out.
func (c *Client) load() (*records, error) {
	r := &records{jobs: map[string]*structs.Job{}, runs: map[string]*allocrunner.Local{}, tasks: map[string]*taskrunner.Local{}}
	bad := func(key string, err error) { c.log.Error("damaged record in client state", "key", key, "error", err) }
	for _, err := range []error{
		state.Each(c.db, state.Allocs, func(_ string, a *structs.Allocation) { r.allocs = append(r.allocs, a) }, bad),
		state.Each(c.db, state.Jobs, func(key string, j *structs.Job) { r.jobs[key] = j }, bad),
		state.Each(c.db, state.Runs, func(key string, l *allocrunner.Local) { r.runs[key] = l }, bad),
		state.Each(c.db, state.Tasks, func(key string, l *taskrunner.Local) { r.tasks[key] = l }, bad),
	} {
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}
