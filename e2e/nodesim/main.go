// Command nodesim puts a fleet of simulated client nodes on servers: see package sim for what they do. It runs until
// SIGINT or SIGTERM and answers GET /stats meanwhile; with ?until=running:300&wait=30s the answer comes once a figure
// has reached a number, or the wait (at most 10 m) is over, as status 504.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/e2e/nodesim/sim"
)

const (
	defaultWait = 5 * time.Minute
	maxWait     = 10 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

type options struct {
	sim     sim.Config
	stats   string
	verbose bool
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var servers, dcs string
	flags := flag.NewFlagSet("nodesim", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.sim.Nodes, "nodes", 10, "number of nodes")
	flags.StringVar(&servers, "servers", "127.0.0.1:4647", "servers' host:port, with commas between")
	flags.StringVar(&dcs, "dcs", "dc1", "datacenters, given to the nodes in turn, with commas between")
	flags.StringVar(&o.sim.NodePool, "pool", "", "node pool")
	flags.StringVar(&o.sim.Region, "region", "", "region")
	flags.DurationVar(&o.sim.Delay, "delay", 0, "time from an assignment until its allocation runs")
	flags.DurationVar(&o.sim.RunFor, "run-for", 0, "time that allocations of batch jobs run; 0: until they are stopped")
	flags.StringVar(&o.sim.Seed, "seed", "", "makes the same nodes each time; empty: new nodes")
	flags.StringVar(&o.stats, "stats", "127.0.0.1:4700", "address for GET /stats; empty: none")
	flags.BoolVar(&o.verbose, "v", false, "log what each node does")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.sim.Servers, o.sim.Datacenters = list(servers), list(dcs)
	return o, nil
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// run gives the exit code.
func run(ctx context.Context, args []string, out io.Writer) int {
	o, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = simulate(ctx, o, out)
	}
	if err != nil {
		fmt.Fprintf(out, "nodesim: %v\n", err)
		return 1
	}
	return 0
}

func simulate(ctx context.Context, o options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	level := hclog.Info
	if o.verbose {
		level = hclog.Debug
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "nodesim", Level: level, Output: out})
	if o.verbose {
		o.sim.Logger = log
	}
	fleet, err := sim.New(o.sim)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	if o.stats != "" {
		l, err := net.Listen("tcp", o.stats)
		if err != nil {
			return fmt.Errorf("listen for stats: %w", err)
		}
		mux := http.NewServeMux()
		mux.Handle("GET /stats", statsHandler(fleet))
		srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second,
			BaseContext: func(net.Listener) context.Context { return ctx }}
		defer srv.Close()
		go func() { served <- srv.Serve(l) }() // ends with Close
		log.Info("figures are served", "address", "http://"+l.Addr().String()+"/stats")
	}
	milestones := make(chan struct{})
	go func() {
		defer close(milestones)
		report(ctx, fleet, o.sim.Nodes, log)
	}()
	ran := make(chan error, 1)
	go func() { ran <- fleet.Run(ctx) }()
	select {
	case err = <-ran:
	case err = <-served:
		cancel()
		<-ran
	}
	cancel()
	<-milestones
	return errors.Join(err, fleet.Close())
}

// report logs when all nodes are there.
func report(ctx context.Context, fleet *sim.Sim, nodes int, log hclog.Logger) {
	if _, err := fleet.Await(ctx, func(st sim.Stats) bool { return st.Registered == nodes }); err != nil {
		return
	}
	log.Info("all nodes are registered", "nodes", nodes)
	if st, err := fleet.Await(ctx, func(st sim.Stats) bool { return st.RegDoneMS > 0 }); err == nil {
		log.Info("all nodes are ready", "nodes", nodes, "ms", st.RegDoneMS)
	}
}

// statsHandler answers with the figures, with until=FIGURE:N once they are reached.
func statsHandler(fleet *sim.Sim) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stats, code := fleet.Stats(), http.StatusOK
		if until := r.URL.Query().Get("until"); until != "" {
			done, wait, err := condition(until, r.URL.Query().Get("wait"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), wait)
			defer cancel()
			if stats, err = fleet.Await(ctx, done); err != nil {
				code = http.StatusGatewayTimeout
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(stats) // who has gone needs no answer
	})
}

func condition(until, wait string) (func(sim.Stats) bool, time.Duration, error) {
	name, text, _ := strings.Cut(until, ":")
	least, err := strconv.Atoi(text)
	if err != nil {
		return nil, 0, fmt.Errorf("until must be FIGURE:NUMBER, not %q", until)
	}
	if _, err := (sim.Stats{}).Figure(name); err != nil {
		return nil, 0, err
	}
	limit := defaultWait
	if wait != "" {
		if limit, err = time.ParseDuration(wait); err != nil {
			return nil, 0, fmt.Errorf("read wait: %w", err)
		}
	}
	return func(st sim.Stats) bool {
		n, _ := st.Figure(name) // the name was tried above
		return n >= least
	}, min(limit, maxWait), nil
}
