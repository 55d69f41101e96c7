package structs

import (
	"strings"
	"testing"
	"time"
)

func TestCheckDispatch(t *testing.T) {
	template := func(payload string) *Job {
		return &Job{ID: Ptr("form"), ParameterizedJob: &ParameterizedJobConfig{Payload: payload,
			MetaRequired: []string{"need"}, MetaOptional: []string{"may"}}}
	}
	need := map[string]string{"need": ""}
	for _, tc := range []struct {
		name, payload string
		d             Dispatch
		want          string
	}{
		{"nothing more than needed", PayloadOptional, Dispatch{Meta: need}, ""},
		{"all that is allowed", PayloadRequired, Dispatch{Meta: map[string]string{"need": "1", "may": "2"},
			Payload: make([]byte, DispatchPayloadLimit), Priority: 100}, ""},
		{"no payload", PayloadRequired, Dispatch{Meta: need}, "payload is not provided but required"},
		{"a payload", PayloadForbidden, Dispatch{Meta: need, Payload: []byte("x")}, "forbidden"},
		{"too much", PayloadOptional, Dispatch{Meta: need, Payload: make([]byte, DispatchPayloadLimit+1)}, "16385 > 16384"},
		{"a key that is missing", PayloadOptional, Dispatch{}, "required meta keys: need"},
		{"keys that are not known", PayloadOptional, Dispatch{Meta: map[string]string{"need": "", "b": "", "a": ""}}, "unpermitted metadata keys: a, b"},
		{"priority", PayloadOptional, Dispatch{Meta: need, Priority: 101}, "priority"},
	} {
		err := template(tc.payload).CheckDispatch(tc.d)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (ErrorCode(err) != CodeInvalid || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	if err := (&Job{ID: Ptr("x")}).CheckDispatch(Dispatch{}); ErrorCode(err) != CodeInvalid {
		t.Errorf("a job that is no template: %v", err)
	}
	stopped := template(PayloadOptional)
	stopped.Stop = true
	if err := stopped.CheckDispatch(Dispatch{Meta: need}); ErrorCode(err) != CodeInvalid {
		t.Errorf("a stopped template: %v", err)
	}
}

func TestNamesOfChildren(t *testing.T) {
	at := time.Unix(1700000000, 5)
	for got, want := range map[string]string{
		PeriodicChildID("a", at):              "a/periodic-1700000000",
		DispatchedChildID("a", "", at, "ff"):  "a/dispatch-1700000000-ff",
		DispatchedChildID("a", "x", at, "ff"): "a/dispatch-x-1700000000-ff",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDispatchMetaIsBounded(t *testing.T) {
	job := &Job{ID: Ptr("x"), ParameterizedJob: &ParameterizedJobConfig{MetaOptional: []string{"a", "b"}}}
	fits := Dispatch{Meta: map[string]string{"a": strings.Repeat("x", DispatchMetaLimit/2), "b": strings.Repeat("x", DispatchMetaLimit/2-2)}}
	if err := job.CheckDispatch(fits); err != nil {
		t.Error(err)
	}
	fits.Meta["b"] += "x"
	if err := job.CheckDispatch(fits); ErrorCode(err) != CodeInvalid || !strings.Contains(err.Error(), "meta exceeds maximum size; 65537 > 65536") {
		t.Error(err)
	}
}

func TestACronThatNeverFiresIsRefused(t *testing.T) {
	for spec, refused := range map[string]bool{"0 0 31 2 *": true, "0 0 29 2 *": false, "0 0 1 1 * 2020": false} {
		job := &Job{ID: Ptr("x"), Type: Ptr(JobTypeBatch), Periodic: &PeriodicConfig{Spec: &spec}}
		job.Canonicalize()
		if err := job.Validate(); refused != (err != nil && strings.Contains(err.Error(), "can never fire")) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
