package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOperatorMetrics(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == "prometheus" {
			_, _ = w.Write([]byte("# TYPE x gauge\n"))
			return
		}
		_, _ = w.Write([]byte(`{"Gauges":[{"Name":"x"}]}`))
	}))
	defer ts.Close()
	for flags, want := range map[string]string{"": `{"Gauges":[{"Name":"x"}]}`, "-format=prometheus": "# TYPE x", "-pretty": "\n    \"Gauges\"",
		"-t={{len_.Gauges}}": "1"} {
		s, out, errs := testStreams()
		args := []string{"operator", "metrics", "-address=" + ts.URL}
		for _, f := range strings.Fields(flags) {
			args = append(args, strings.ReplaceAll(f, "_", " "))
		}
		if code := run("nomadlite", args, s); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d: %s%s", flags, code, out, errs)
		}
	}
}
