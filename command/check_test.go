package command

import (
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestCheckJudges(t *testing.T) {
	well := func() *checkView {
		return &checkView{health: &structs.AgentHealthResponse{Server: &structs.AgentHealth{OK: true}, Client: &structs.AgentHealth{OK: true}},
			self: "a.global", members: &structs.ServerMembers{Members: []*structs.AgentMember{{Name: "a.global", Status: "alive"},
				{Name: "b.global", Status: "alive"}, {Name: "c.global", Status: "failed"}}},
			servers: []string{"127.0.0.1:4647"}, stats: map[string]string{"last_heartbeat": "3s", "heartbeat_ttl": "10s"}}
	}
	for _, c := range []struct {
		name           string
		change         func(*checkView)
		peers, servers int
		fault          string
	}{
		{"well", func(*checkView) {}, 1, 1, ""},
		{"too few peers", func(*checkView) {}, 2, 1, "1 peers are known, 2 must be"},
		{"too few servers", func(*checkView) {}, 1, 2, "1 servers are known, 2 must be"},
		{"an old heartbeat", func(v *checkView) { v.stats["last_heartbeat"] = "11s" }, 0, 1, "older than its TTL"},
		{"a sick server", func(v *checkView) { v.health.Server = &structs.AgentHealth{Message: "no leader"} }, 0, 1, "server: no leader"},
		{"only a client", func(v *checkView) { v.health.Server, v.members = nil, nil }, 9, 1, ""},
	} {
		v := well()
		c.change(v)
		lines, faults := v.judge(c.peers, c.servers)
		if got := strings.Join(faults, "|"); (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) || len(lines) == 0 {
			t.Errorf("%s: %q, %q", c.name, lines, faults)
		}
	}
	s, _, errs := testStreams()
	if code := run("nomadlite", []string{"check", "-address=http://127.0.0.1:1"}, s); code != 2 || !strings.Contains(errs.String(), "nable to query agent") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
