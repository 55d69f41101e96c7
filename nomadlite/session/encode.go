package session

import (
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// encodedKept bounds how many encoded specifications are kept.
const encodedKept = 64

// encoder encodes answers to polls. One plan often puts the same job on thousands of nodes: its specification, an
// immutable row, is encoded once.
type encoder struct {
	mu   sync.Mutex
	jobs map[*structs.Job]cbor.RawMessage
}

// encodedAnswer is an answer with its jobs encoded; its own Jobs hides the embedded one.
type encodedAnswer struct {
	*structs.AssignmentsResponse
	Jobs []cbor.RawMessage
}

func (e *encoder) encode(res *structs.AssignmentsResponse) ([]byte, error) {
	out := encodedAnswer{AssignmentsResponse: res}
	for _, job := range res.Jobs {
		data, err := e.job(job)
		if err != nil {
			return nil, err
		}
		out.Jobs = append(out.Jobs, data)
	}
	return codec.Marshal(&out)
}

func (e *encoder) job(job *structs.Job) (cbor.RawMessage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if data := e.jobs[job]; data != nil {
		return data, nil
	}
	data, err := codec.Marshal(job)
	if err != nil {
		return nil, err
	}
	if e.jobs == nil || len(e.jobs) >= encodedKept {
		e.jobs = map[*structs.Job]cbor.RawMessage{}
	}
	e.jobs[job] = data
	return data, nil
}
