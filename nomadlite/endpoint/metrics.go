package endpoint

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func metricsRoutes(b *Backend) []route.Route {
	return []route.Route{local("/v1/metrics", b.handler(b.readMetrics))}
}

// meter counts what handlers write, since the process started.
type meter struct {
	mu    sync.Mutex
	write sample
}

// sample sums up values.
type sample struct {
	Count      int
	Sum, SumSq float64
	Min, Max   float64
}

func (s *sample) add(value float64) {
	if s.Count == 0 {
		s.Min, s.Max = value, value
	}
	s.Count++
	s.Sum += value
	s.SumSq += value * value
	s.Min, s.Max = min(s.Min, value), max(s.Max, value)
}

// apply commits a command and takes the time.
func (b *Backend) apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	start := time.Now()
	resp, index, err := b.Raft.Apply(ctx, kind, req)
	took := float64(time.Since(start)) / float64(time.Millisecond)
	b.meter.mu.Lock()
	b.meter.write.add(took)
	b.meter.mu.Unlock()
	return resp, index, err
}

// gauge and sampled are rows of the public API's metrics.
type gauge struct {
	Name   string
	Value  float64
	Labels map[string]string
}

type sampled struct {
	Name   string
	Count  int
	Rate   float64
	Sum    float64
	Min    float64
	Max    float64
	Mean   float64
	Stddev float64
	Labels map[string]string
}

func sampledOf(name string, s sample, uptime time.Duration) sampled {
	out := sampled{Name: name, Count: s.Count, Sum: s.Sum, Min: s.Min, Max: s.Max, Labels: map[string]string{}}
	if s.Count > 0 {
		n := float64(s.Count)
		out.Mean = s.Sum / n
		out.Stddev = math.Sqrt(max(0, s.SumSq/n-out.Mean*out.Mean))
		out.Rate = s.Sum / max(1, uptime.Seconds())
	}
	return out
}

// readMetrics gives the figures as they are now: gauges are read when they are asked for, counters and samples are
// totals since the process started.
func (b *Backend) readMetrics(w http.ResponseWriter, _ *route.Request, q *query) error {
	gauges := b.gauges()
	switch format := q.values.Get("format"); format {
	case "":
	case "prometheus":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(prometheusText(gauges))
		return nil
	default:
		return structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter format: expected \"prometheus\" or none",
			format)
	}
	uptime := time.Since(b.started)
	b.meter.mu.Lock()
	write := b.meter.write
	b.meter.mu.Unlock()
	n := float64(write.Count)
	count := sample{Count: write.Count, Sum: n, SumSq: n, Min: min(1, n), Max: min(1, n)}
	return answer(w, q, struct {
		Timestamp string
		Gauges    []gauge
		Points    []struct{}
		Counters  []sampled
		Samples   []sampled
	}{
		Timestamp: b.now().UTC().Truncate(time.Second).Format("2006-01-02 15:04:05 -0700 MST"),
		Gauges:    gauges,
		Points:    []struct{}{},
		Counters:  []sampled{sampledOf("nomad.raft.apply", count, uptime)},
		Samples: []sampled{
			sampledOf("nomad.raft.commitTime", write, uptime),
			sampledOf("nomad.runtime.gc_pause_ns", gcPauses(), uptime),
		},
	})
}

func gcPauses() sample {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	var out sample
	for i := uint32(0); i < min(stats.NumGC, uint32(len(stats.PauseNs))); i++ {
		out.add(float64(stats.PauseNs[(stats.NumGC-1-i)%uint32(len(stats.PauseNs))]))
	}
	return out
}

// gauges are ordered by name.
func (b *Backend) gauges() []gauge {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	values := map[string]float64{
		"nomad.runtime.num_goroutines":     float64(runtime.NumGoroutine()),
		"nomad.runtime.alloc_bytes":        float64(stats.Alloc),
		"nomad.runtime.sys_bytes":          float64(stats.Sys),
		"nomad.runtime.malloc_count":       float64(stats.Mallocs),
		"nomad.runtime.free_count":         float64(stats.Frees),
		"nomad.runtime.heap_objects":       float64(stats.HeapObjects),
		"nomad.runtime.total_gc_pause_ns":  float64(stats.PauseTotalNs),
		"nomad.runtime.total_gc_runs":      float64(stats.NumGC),
		"nomad.raft.appliedIndex":          float64(b.Store.Index()),
		"nomad.nomad.job_status.pending":   0,
		"nomad.nomad.job_status.running":   0,
		"nomad.nomad.job_status.dead":      0,
		"nomad.nomad.node_status.ready":    0,
		"nomad.nomad.node_status.down":     0,
		"nomad.nomad.job_summary.queued":   0,
		"nomad.nomad.job_summary.starting": 0,
		"nomad.nomad.job_summary.running":  0,
		"nomad.nomad.job_summary.complete": 0,
		"nomad.nomad.job_summary.failed":   0,
		"nomad.nomad.job_summary.lost":     0,
		"nomad.nomad.job_summary.unknown":  0,
	}
	refused := b.Store.Stats() // reports that went back in an allocation's life, and those of what is not there
	values["nomad.nomad.state.refused_observations"] = float64(refused.RefusedObservations)
	values["nomad.nomad.state.unknown_observations"] = float64(refused.UnknownObservations)
	snap := b.Store.Snapshot()
	for job := range snap.Jobs(nil, structs.AllNamespaces) {
		values["nomad.nomad.job_status."+job.Status]++
		summary := snap.JobSummary(nil, structs.Val(job.Namespace), structs.Val(job.ID))
		if summary == nil {
			continue
		}
		for _, group := range summary.Summary {
			values["nomad.nomad.job_summary.queued"] += float64(group.Queued)
			values["nomad.nomad.job_summary.starting"] += float64(group.Starting)
			values["nomad.nomad.job_summary.running"] += float64(group.Running)
			values["nomad.nomad.job_summary.complete"] += float64(group.Complete)
			values["nomad.nomad.job_summary.failed"] += float64(group.Failed)
			values["nomad.nomad.job_summary.lost"] += float64(group.Lost)
			values["nomad.nomad.job_summary.unknown"] += float64(group.Unknown)
		}
	}
	for node := range snap.Nodes(nil) {
		values["nomad.nomad.node_status."+node.Status]++
	}
	if b.Applied != nil {
		for command, n := range b.Applied() {
			values["nomad.raft.applied."+command] = float64(n)
		}
	}
	if b.Broker != nil {
		for name, value := range b.Broker.Stats() {
			if number, ok := toFloat(value); ok {
				values["nomad.nomad.broker."+name] = number
			}
		}
	}
	out := make([]gauge, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, gauge{Name: name, Value: values[name], Labels: map[string]string{}})
	}
	return out
}

func toFloat(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// prometheusText is the gauges in the text format of Prometheus.
func prometheusText(gauges []gauge) []byte {
	var out strings.Builder
	for _, g := range gauges {
		name := strings.Map(func(c rune) rune {
			if c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				return c
			}
			return '_'
		}, g.Name)
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s gauge\n%s %v\n", name, g.Name, name, name, g.Value)
	}
	return []byte(out.String())
}
