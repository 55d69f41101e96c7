package command

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// The exit codes which monitoring systems know; 0 is for an agent that is well.
const checkCritical = 2

func agentCheck() *spec {
	return &spec{name: "check", args: "", synopsis: "Say whether an agent is well", client: true, failure: checkCritical,
		help: `Says whether the agent that is asked is well, for monitoring systems: its parts must call themselves healthy, a server must
know enough other servers, and a client enough servers and the last heartbeat must be younger than its TTL.

Exit code 0: well; 2: not, or it cannot be asked.`,
		minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var peers, servers int
			fs.IntVar(&peers, "min-peers", 0, "How many other `SERVERS` a server must know to be alive.")
			fs.IntVar(&servers, "min-servers", 1, "How many `SERVERS` a client must know.")
			return func(ctx context.Context, c *call) error {
				health, err := c.client.Agent().Health(ctx)
				if err != nil {
					return fmt.Errorf("unable to query agent: %s", api.Text(err))
				}
				self, err := c.client.Agent().Self(ctx)
				if err != nil {
					return fmt.Errorf("unable to query agent: %s", api.Text(err))
				}
				seen := checkView{health: health, stats: self.Stats["client"], self: self.Member.Name}
				if health.Server != nil {
					if seen.members, err = c.client.Agent().Members(ctx, nil); err != nil {
						return fmt.Errorf("unable to query the servers: %s", api.Text(err))
					}
				}
				if health.Client != nil {
					if seen.servers, err = c.client.Agent().Servers(ctx); err != nil {
						return fmt.Errorf("unable to query the servers: %s", api.Text(err))
					}
				}
				lines, faults := seen.judge(peers, servers)
				c.printf("%s", strings.Join(lines, ""))
				if len(faults) > 0 {
					return &exitError{code: checkCritical, text: strings.Join(faults, "\n")}
				}
				return nil
			}
		}}
}

// checkView is what an agent says about itself.
type checkView struct {
	health  *structs.AgentHealthResponse
	stats   map[string]string // of the client
	self    string            // the server's name
	members *structs.ServerMembers
	servers []string // that the client knows
}

// judge gives what is shown, and what is wrong.
func (v *checkView) judge(peers, servers int) (lines, faults []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format+"\n", args...)) }
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if s := v.health.Server; s != nil {
		if !s.OK {
			fault("server: %s", s.Message)
		}
		known := 0
		for _, m := range v.members.Members {
			if m.Name != v.self && m.Status == "alive" {
				known++
			}
		}
		say("server: known peers: %d", known)
		if known < peers {
			fault("server: %d peers are known, %d must be", known, peers)
		}
	}
	if s := v.health.Client; s != nil {
		if !s.OK {
			fault("client: %s", s.Message)
		}
		say("client: known servers: %d", len(v.servers))
		if len(v.servers) < servers {
			fault("client: %d servers are known, %d must be", len(v.servers), servers)
		}
		last, err := time.ParseDuration(v.stats["last_heartbeat"])
		ttl, err2 := time.ParseDuration(v.stats["heartbeat_ttl"])
		if err == nil && err2 == nil && ttl > 0 {
			say("client: last heartbeat: %s ago, its TTL: %s", last.Round(time.Millisecond), ttl.Round(time.Millisecond))
			if last > ttl {
				fault("client: the last heartbeat is older than its TTL")
			}
		}
	}
	return lines, faults
}
