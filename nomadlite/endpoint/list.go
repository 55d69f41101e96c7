package endpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/go-bexpr"

	"github.com/nomadlite/nomadlite/structs"
)

// list is how the rows of one kind are shown.
type list[T any] struct {
	rows iter.Seq[T]
	// token names a row's place; rows come in the order of their tokens. What a token is made of is joined by NUL.
	token func(T) string
	// sorted says that rows come in the order which the query wants, reversed or not.
	sorted bool
	// keep drops rows beside the filter; nil keeps all.
	keep func(T) bool
	// show is the row as it is answered.
	show func(T) any
}

// appender is what rows may have to be encoded without reflection.
type appender interface{ AppendJSON(dst []byte) []byte }

// answerList writes rows as one JSON array, one after the other. A page is gathered first, since the token of the
// next one must be in the header.
func answerList[T any](w http.ResponseWriter, q *query, l list[T]) error {
	rows, err := l.selected(q)
	if err != nil {
		return err
	}
	if q.perPage > 0 || q.filter != "" {
		// A filter may fail at any row: that must be known before the answer begins.
		var page []T
		for row, err := range rows {
			if err != nil {
				return err
			}
			if q.perPage > 0 && len(page) == q.perPage {
				w.Header().Set("X-Nomad-NextToken", publicToken(l.token(row)))
				break
			}
			page = append(page, row)
		}
		rows = withoutErrors(slices.Values(page))
	}
	if q.pretty {
		return l.answerPretty(w, q, rows)
	}
	w.Header().Set("Content-Type", "application/json")
	buf := append(make([]byte, 0, 4096), '[')
	first := true
	for row := range rows {
		if !first {
			buf = append(buf, ',')
		}
		first = false
		if buf, err = appendJSON(buf, l.show(row)); err != nil {
			return err
		}
		if len(buf) > 32<<10 {
			if _, err := w.Write(buf); err != nil {
				return nil // the reader is gone
			}
			buf = buf[:0]
		}
	}
	_, _ = w.Write(append(buf, ']'))
	return nil
}

func (l list[T]) answerPretty(w http.ResponseWriter, q *query, rows iter.Seq2[T, error]) error {
	text := []byte{'['}
	for row := range rows {
		if len(text) > 1 {
			text = append(text, ',')
		}
		var err error
		if text, err = appendJSON(text, l.show(row)); err != nil {
			return err
		}
	}
	return answerRaw(w, q, append(text, ']'))
}

func appendJSON(dst []byte, value any) ([]byte, error) {
	if fast, ok := value.(appender); ok {
		return fast.AppendJSON(dst), nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return append(dst, text...), nil
}

// selected gives the rows which the query asks for, in its order.
func (l list[T]) selected(q *query) (iter.Seq2[T, error], error) {
	var match *bexpr.Evaluator
	if q.filter != "" {
		var err error
		if match, err = bexpr.CreateEvaluator(q.filter); err != nil {
			return nil, filterError(err)
		}
	}
	next := privateToken(q.nextToken)
	rows := l.rows
	if q.reverse && !l.sorted {
		all := slices.Collect(rows)
		slices.Reverse(all)
		rows = slices.Values(all)
	}
	return func(yield func(T, error) bool) {
		for row := range rows {
			if l.before(row, next, q.reverse) || (l.keep != nil && !l.keep(row)) {
				continue
			}
			if match != nil {
				ok, err := match.Evaluate(whole(row, q.filter))
				if err != nil {
					yield(row, filterError(err))
					return
				}
				if !ok {
					continue
				}
			}
			if !yield(row, nil) {
				return
			}
		}
	}, nil
}

// whole gives a row as filters know it. The events of tasks are kept packed, and unpacking them is for filters that ask for them.
func whole(row any, filter string) any {
	if alloc, ok := row.(*structs.Allocation); ok && strings.Contains(filter, "Events") {
		return alloc.WithEvents()
	}
	return row
}

// before says whether a row comes before the page that begins with next.
func (l list[T]) before(row T, next string, reverse bool) bool {
	switch {
	case next == "":
		return false
	case reverse:
		return l.token(row) > next
	}
	return l.token(row) < next
}

// publicToken is a token as it may stand in a header: namespaces have no slash.
func publicToken(token string) string { return strings.Replace(token, "\x00", "/", 1) }

func privateToken(token string) string { return strings.Replace(token, "/", "\x00", 1) }

func withoutErrors[T any](rows iter.Seq[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func filterError(err error) error {
	return structs.Errorf(structs.CodeInvalid, "failed to create result paginator: failed to read filter expression: %w",
		err)
}

// age is what lists are ordered by when nothing else is asked for: the index at which a row was made, then its id.
type age struct {
	index uint64
	id    string
}

func (a age) token() string { return fmt.Sprintf("%020d\x00%s", a.index, a.id) }

// byAge sorts rows, the oldest first.
func byAge[T any](rows iter.Seq[T], of func(T) age) iter.Seq[T] {
	return func(yield func(T) bool) {
		sorted := slices.SortedFunc(rows, func(a, b T) int {
			x, y := of(a), of(b)
			return cmp.Or(cmp.Compare(x.index, y.index), strings.Compare(x.id, y.id))
		})
		for _, row := range sorted {
			if !yield(row) {
				return
			}
		}
	}
}
