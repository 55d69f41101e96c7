package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestEmptyIDsNameNothing has one object of each kind, which an empty prefix would name: a script whose variable is not
// set must not stop it.
func TestEmptyIDsNameNothing(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		one := `{"ID": "aaaa1111-0000-8000-8000-000000000000", "Status": "running"}`
		if strings.HasSuffix(r.URL.Path, "s") {
			one = "[" + one + "]"
		}
		_, _ = io.WriteString(w, one)
	}))
	t.Cleanup(ts.Close)
	for want, calls := range map[string][]string{
		"job is empty":                      {"job stop -yes", "job stop -immediate -yes -detach", "job restart -yes", "job start"},
		"The id of the allocation is empty": {"alloc stop", "alloc stop -no-shutdown-delay -detach", "alloc restart", "alloc signal"},
		"Name a node":                       {"node drain -enable -yes -detach", "node eligibility -disable"},
		"The id of the node is empty":       {"node maintenance -for=5m"},
		"The id of the deployment is empty": {"deployment fail", "deployment pause"},
	} {
		for _, line := range calls {
			args := append(strings.Fields(line), "")
			args = append(args[:2:2], append([]string{"-address=" + ts.URL}, args[2:]...)...)
			s, out, errs := testStreams()
			if code := run("nomadlite", args, s); code != 1 || !strings.Contains(errs.String(), want) {
				t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
			}
		}
	}
}
