package broker

import "sort"

// event is that something happened at a raft index which could help blocked evaluations.
type event struct {
	node, class string // node empty: anything may have changed, such as the scheduler's configuration
	index       uint64
	dead        bool // a newer one of the same node says more, or the node is gone
}

// events is what happened, oldest first, of each node only the newest.
type events struct {
	log    []*event
	byNode map[string]*event
	dead   int
}

func newEvents() *events { return &events{byNode: map[string]*event{}} }

func (l *events) add(node, class string, index uint64) {
	l.drop(node)
	e := &event{node: node, class: class, index: index}
	l.log = append(l.log, e)
	l.byNode[node] = e
}

func (l *events) drop(node string) {
	if old := l.byNode[node]; old != nil {
		old.dead = true
		l.dead++
		delete(l.byNode, node)
	}
}

// after is the place of the first event later than index.
func (l *events) after(index uint64) int {
	return sort.Search(len(l.log), func(i int) bool { return l.log[i].index > index })
}

// compact forgets what is dead, once that is the larger part; the shapes' places move with it.
func (l *events) compact(shapes map[string]*shape) {
	if l.dead < 64 || l.dead < len(l.log)/2 {
		return
	}
	left := make([]int, len(l.log)+1) // that are alive before each place
	kept := make([]*event, 0, len(l.log)-l.dead)
	for i, e := range l.log {
		left[i] = len(kept)
		if !e.dead {
			kept = append(kept, e)
		}
	}
	left[len(l.log)] = len(kept)
	for _, s := range shapes {
		s.from = left[s.from]
	}
	l.log, l.dead = kept, 0
}
