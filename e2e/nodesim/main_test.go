package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/e2e/nodesim/sim"
	"github.com/nomadlite/nomadlite/e2e/proc"
)

// TestFiguresAreServed runs the command against a server, asks for its figures, and ends it as a signal would.
func TestFiguresAreServed(t *testing.T) {
	server := proc.New(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	server.Start()
	out, log := io.Pipe()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		dec := make([]byte, 4096)
		for text := ""; ; {
			n, err := out.Read(dec)
			text += string(dec[:n])
			for {
				line, rest, ok := strings.Cut(text, "\n")
				if !ok {
					break
				}
				lines <- line
				text = rest
			}
			if err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"-nodes", "5", "-servers", fmt.Sprintf("127.0.0.1:%d", server.RPC), "-stats", "127.0.0.1:0"}, log)
		log.Close()
	}()
	var url string
	for line := range lines {
		if _, rest, ok := strings.Cut(line, "address="); ok {
			url = strings.TrimSpace(rest)
			break
		}
	}
	go func() {
		for range lines { // whatever else it says
		}
	}()
	get := func(query string) (int, sim.Stats) {
		t.Helper()
		res, err := http.Get(url + query)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var stats sim.Stats
		if res.StatusCode != http.StatusBadRequest {
			if err := json.NewDecoder(res.Body).Decode(&stats); err != nil {
				t.Fatal(err)
			}
		}
		return res.StatusCode, stats
	}
	if code, st := get("?until=ready:5&wait=30s"); code != 200 || st.Ready != 5 || st.Registered != 5 || st.Heartbeats < 5 {
		t.Errorf("figures: %d %+v", code, st)
	}
	if code, _ := get("?until=running:1&wait=1ms"); code != http.StatusGatewayTimeout {
		t.Errorf("status %d of what is not reached", code)
	}
	for _, query := range []string{"?until=nothing:1", "?until=ready", "?until=ready:x", "?until=ready:1&wait=x"} {
		if code, _ := get(query); code != http.StatusBadRequest {
			t.Errorf("status %d for %s", code, query)
		}
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-nodes", "0"}, {"-servers", ""}, {"-x"}, {"more"}, {"-stats", "256.0.0.1:1"}} {
		var out strings.Builder
		if code := run(context.Background(), args, &out); code != 1 || !strings.Contains(out.String(), "nodesim: ") {
			t.Errorf("%v: exit code %d, %q", args, code, out.String())
		}
	}
}
