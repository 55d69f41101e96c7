package session

import (
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// footprint opens n sessions, each with one parked request, and measures what an accepting process needs for each.
// The dialling ends live in the same process, so they are measured too; both figures are for the two ends together.
func footprint(t testing.TB, n int) (goroutines float64, bytes float64) {
	parked := make(chan *Parked, n)
	park := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pk, ok := Park(w, nil); ok {
			parked <- pk
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var wg sync.WaitGroup
	var sessions []*Session
	measure := func() (int, uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse
	}
	g0, m0 := measure()
	for range n {
		a, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		dialed, _ := Dialed(a, Config{})
		accepted, _ := Accepted(b, Config{})
		sessions = append(sessions, dialed, accepted)
		wg.Add(3)
		go func() { defer wg.Done(); _ = dialed.Serve(nil) }()
		go func() { defer wg.Done(); _ = accepted.Serve(park) }()
		go func() {
			defer wg.Done()
			req, _ := http.NewRequest("POST", "/v1/internal/node/assignments", strings.NewReader(strings.Repeat("x", 200)))
			_, _ = dialed.RoundTrip(req)
		}()
		<-parked
	}
	// The serving goroutines have to return after Park.
	g1, m1 := measure()
	for deadline := time.Now().Add(5 * time.Second); g1-g0 > 9*n && time.Now().Before(deadline); {
		runtime.Gosched()
		g1, m1 = measure()
	}
	for _, s := range sessions {
		_ = s.Close()
	}
	wg.Wait()
	return float64(g1-g0) / float64(n), float64(m1-m0) / float64(n)
}

// An idle session with a parked poll has four goroutines at the end that parks, and five at the end that waits.
func TestFootprintOfAParkedPoll(t *testing.T) {
	goroutines, bytes := footprint(t, 200)
	t.Logf("both ends of an idle session: %.1f goroutines, %.1f KiB", goroutines, bytes/1024)
	if goroutines > 9 {
		t.Errorf("%.1f goroutines, want at most 9", goroutines)
	}
	if limit := 70.0 * 1024; bytes > limit && !raceEnabled {
		t.Errorf("%.0f bytes, want at most %.0f", bytes, limit)
	}
}

func BenchmarkParkedPoll(b *testing.B) {
	for b.Loop() {
		goroutines, bytes := footprint(b, 500)
		b.ReportMetric(goroutines, "goroutines/pair")
		b.ReportMetric(bytes/1024, "KiB/pair")
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	p := newPair(b, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("ok")) }))
	b.ReportAllocs()
	for b.Loop() {
		res, err := p.dialed.RoundTrip(request(b, "POST", "/v1/x", strings.NewReader("hello")))
		if err != nil {
			b.Fatal(err)
		}
		_ = res.Body.Close()
	}
}
