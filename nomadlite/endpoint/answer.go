package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
)

// answer writes a value as JSON.
func answer(w http.ResponseWriter, q *query, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return answerRaw(w, q, text)
}

// answerRaw writes JSON text.
func answerRaw(w http.ResponseWriter, q *query, text []byte) error {
	if q != nil && q.pretty {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, text, "", "    "); err != nil {
			return fmt.Errorf("indent answer: %w", err)
		}
		text = append(pretty.Bytes(), '\n')
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a sender who is gone needs no answer
	return nil
}

// answerWrite sets a write's index and answers with its result; nil gives an empty body.
func answerWrite(w http.ResponseWriter, q *query, index uint64, value any) error {
	setIndex(w, index)
	if value == nil {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return answer(w, q, value)
}

// handler is a route.Handler which gets the common parameters.
func (b *Backend) handler(handle func(w http.ResponseWriter, r *route.Request, q *query) error) route.Handler {
	return func(w http.ResponseWriter, r *route.Request) error {
		q, err := b.parseQuery(r)
		if err != nil {
			return err
		}
		return handle(w, r, q)
	}
}
