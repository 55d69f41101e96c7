package nomadlite

import (
	"context"
	"errors"
	"net/http"

	"github.com/nomadlite/nomadlite/nomadlite/session"
)

// Leave takes this server out of its cluster for good, so that the others do not count on it any more; then it is to be
// closed. One that is the only server, or without which the others have no majority, stays a member: its state is what
// its cluster comes back with. It logs what came of it. Run must not have ended.
func (s *Server) Leave(ctx context.Context) {
	membership := s.members.inner.Load()
	if membership == nil {
		return
	}
	left, err := membership.Leave(ctx, successor{s})
	switch {
	case err != nil:
		s.log.Warn("this server stops and stays a member of its cluster", "error", err)
	case left:
		s.log.Info("this server has left its cluster")
	default:
		s.log.Info("this server is the only one of its cluster: it stops and keeps its state")
	}
}

// successor asks the server that leads after this one.
type successor struct{ *Server }

func (s successor) Do(req *http.Request) (*http.Response, error) {
	for {
		changed := s.lead.LeaderChanged()
		res, err := s.forwarder.Do(req)
		if !errors.Is(err, session.ErrIsLeader) {
			return res, err
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}
