package e2e

import (
	"fmt"
	"sync"
	"testing"
)

// severalServers starts a cluster whose servers miss a node after seconds; change adds to the configuration of each.
func severalServers(t *testing.T, n int, change func(config map[string]any)) []*agent {
	t.Helper()
	var all []*agent
	var addrs []string
	for i := range n {
		a := newAgent(t, func(c map[string]any) { c["name"] = fmt.Sprintf("server-%d", i+1) })
		all, addrs = append(all, a), append(addrs, fmt.Sprintf("127.0.0.1:%d", a.RPC))
	}
	var starts sync.WaitGroup
	for _, a := range all {
		a.Config["server"] = map[string]any{"enabled": true, "bootstrap_expect": n,
			"encrypt": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "min_heartbeat_ttl": "1s", "heartbeat_grace": "1s",
			"server_join": map[string]any{"retry_join": addrs, "retry_interval": "1s"}}
		change(a.Config)
		starts.Go(func() { a.Start() }) // none is ready before there is a leader
	}
	starts.Wait()
	return all
}
