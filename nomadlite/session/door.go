package session

import (
	"container/list"
	"net"
	"sync"
)

// maxHandshakes is how many connections may be without a finished handshake, over all hosts.
const maxHandshakes = 1024

// door bounds what hosts that have not shown who they are can take up: the connections of each, and all that have not
// finished their handshake. When there are too many of these the oldest has to go: an honest one takes milliseconds. This
// machine's own connections (loopback) are not counted by host.
type door struct {
	perHost    int // 0: no bound
	handshakes int

	mu     sync.Mutex
	hosts  map[string]*visitors
	greets *list.List // of *guest, the oldest first
}

type visitors struct {
	conns   int
	refused bool // was told of already
}

// guest is one accepted connection.
type guest struct {
	door *door
	conn net.Conn
	host string        // empty: not counted
	turn *list.Element // nil once greeted
}

func newDoor(perHost int) *door {
	return &door{perHost: perHost, handshakes: maxHandshakes, hosts: map[string]*visitors{}, greets: list.New()}
}

// enter lets a connection in. When its host has too many it gives nil, and news says that this was not so before.
func (d *door) enter(conn net.Conn) (g *guest, news bool) {
	g = &guest{door: d, conn: conn, host: hostOf(conn)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.perHost > 0 && g.host != "" {
		v := d.hosts[g.host]
		if v == nil {
			v = &visitors{}
			d.hosts[g.host] = v
		}
		if v.conns >= d.perHost {
			news, v.refused = !v.refused, true
			return nil, news
		}
		v.conns++
	} else {
		g.host = ""
	}
	if d.greets.Len() >= d.handshakes {
		oldest := d.greets.Remove(d.greets.Front()).(*guest)
		oldest.turn = nil
		_ = oldest.conn.Close()
	}
	g.turn = d.greets.PushBack(g)
	return g, false
}

// greeted says that the handshake is over. A connection that has proven to be a server's is not counted by host any more.
func (g *guest) greeted(proven bool) {
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	if g.turn != nil {
		g.door.greets.Remove(g.turn)
		g.turn = nil
	}
	if proven {
		g.discount()
	}
}

// leave says that the connection has ended, or is somebody else's.
func (g *guest) leave() { g.greeted(true) }

// discount takes the connection out of its host's; the caller holds the lock.
func (g *guest) discount() {
	if g.host == "" {
		return
	}
	v := g.door.hosts[g.host]
	if v.conns--; v.conns == 0 {
		delete(g.door.hosts, g.host)
	}
	g.host = ""
}

// hostOf is the address at the other end without its port, empty for this machine's own.
func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return ""
	}
	return host
}
