package template

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/nomadlite/nomadlite/internal/pause"
	"github.com/nomadlite/nomadlite/structs"
)

// fileInterval is how often a file that a template shows is looked at. Whatever may write it, notice is not needed
// sooner, and inotify sees nothing of network file systems.
const fileInterval = 2 * time.Second

// ask follows a query of the servers until ctx is done.
func (s *session) ask(ctx context.Context, q Query) {
	index, wait := uint64(0), minRetry
	for {
		answer, next, err := s.cfg.Source.Fetch(ctx, s.namespace, q, index)
		switch {
		case ctx.Err() != nil:
			return
		case lasting(err):
			answer, next, err = Answer{Fault: err.Error()}, 0, nil
		case err != nil:
			s.cfg.Logger.Debug("servers do not answer for a template, trying again", "query", q.String(), "error", err)
			if !pause.For(ctx, wait) {
				return
			}
			wait = min(2*wait, maxRetry)
			continue
		}
		if next == 0 || next != index {
			if !s.tell(ctx, news{q, answer}) {
				return
			}
		}
		if next == 0 { // nothing more will come
			return
		}
		if next < index {
			next = 0 // the servers began anew
		}
		index, wait = next, minRetry
	}
}

// lasting says that asking again will not help.
func lasting(err error) bool {
	if err == nil {
		return false
	}
	switch structs.ErrorCode(err) {
	case structs.CodeInvalid, structs.CodePermission, structs.CodeNotFound, structs.CodeNotImplemented:
		return true
	}
	return false
}

func (s *session) tell(ctx context.Context, n news) bool {
	select {
	case s.news <- n:
		return true
	case <-ctx.Done():
		return false
	}
}

// seen is what tells one state of a file from another.
type seen struct {
	size int64
	at   time.Time
	err  bool
}

func (s *session) glance(q Query) seen {
	p, err := s.places.find(q.Name)
	if err != nil {
		return seen{err: true}
	}
	f, info, err := p.open()
	if err != nil {
		return seen{err: true}
	}
	defer f.Close()
	return seen{size: info.Size(), at: info.ModTime()}
}

// look reads a file that a template shows.
func (s *session) look(q Query) (seen, Answer) {
	before := s.glance(q)
	p, err := s.places.find(q.Name)
	if err != nil {
		return before, Answer{Fault: err.Error()}
	}
	data, err := p.read()
	if errors.Is(err, fs.ErrNotExist) {
		err = structs.Errorf(structs.CodeNotFound, "file %q does not exist", q.Name)
	}
	if err != nil {
		return before, Answer{Fault: err.Error()}
	}
	return before, Answer{Text: string(data)}
}

// watchFile follows a file until ctx is done. One that vanishes or cannot be read keeps the content it had: it may be about
// to be replaced.
func (s *session) watchFile(ctx context.Context, q Query, was seen, had Answer) {
	for pause.For(ctx, fileInterval) {
		now := s.glance(q)
		if now == was || now.err {
			continue
		}
		was, now = now, seen{}
		_, answer := s.look(q)
		if answer.Fault != "" || answer.Text == had.Text {
			continue
		}
		if had = answer; !s.tell(ctx, news{q, answer}) {
			return
		}
	}
}
