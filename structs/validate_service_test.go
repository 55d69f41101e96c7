package structs

import (
	"strings"
	"testing"
	"time"
)

func TestChecksOfProviderNomad(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Service, *ServiceCheck)
		want   string // empty when it is valid
	}{
		{"http", func(*Service, *ServiceCheck) {}, ""},
		{"grpc", func(_ *Service, c *ServiceCheck) { c.Type = "grpc" }, ""},
		{"script", func(s *Service, c *ServiceCheck) {
			s.PortLabel, c.Type, c.Command, c.TaskName = "", "script", "/bin/true", "t"
		}, ""},
		{"script of no task", func(_ *Service, c *ServiceCheck) { c.Type, c.Command = "script", "/bin/true" }, "needs the task it runs in"},
		{"unknown type", func(_ *Service, c *ServiceCheck) { c.Type = "udp" }, `type "udp" is not one of`},
		{"unknown port", func(_ *Service, c *ServiceCheck) { c.PortLabel = "admin" }, `port "admin" is not a port of the group`},
		{"no port, to be exposed", func(s *Service, c *ServiceCheck) { s.PortLabel, c.Expose = "", true }, "port is missing"},
		{"unknown task", func(_ *Service, c *ServiceCheck) { c.TaskName = "other" }, `task "other" is not in the group`},
		{"short interval", func(_ *Service, c *ServiceCheck) { c.Interval = 999 * time.Millisecond }, "interval must be at least 1s"},
		{"short timeout", func(_ *Service, c *ServiceCheck) { c.Timeout = 999 * time.Millisecond }, "timeout must be at least 1s"},
		{"protocol", func(_ *Service, c *ServiceCheck) { c.Protocol = "gopher" }, "protocol"},
		{"method", func(_ *Service, c *ServiceCheck) { c.Method = "GET /" }, "is no method of HTTP"},
		{"path of another host", func(_ *Service, c *ServiceCheck) { c.Path = "http://example.com/" }, "must be the part of a URL after its host"},
		{"path with a query", func(_ *Service, c *ServiceCheck) { c.Path = "/v1/x?full=1" }, ""},
		{"ignored, and restarts", func(_ *Service, c *ServiceCheck) {
			c.OnUpdate, c.CheckRestart = "ignore", &CheckRestart{Limit: 1}
		}, "restarts nothing"},
		{"ignores warnings, and restarts for them", func(_ *Service, c *ServiceCheck) {
			c.OnUpdate, c.CheckRestart = "ignore_warnings", &CheckRestart{Limit: 1}
		}, "needs ignore_warnings"},
		{"ignores warnings", func(_ *Service, c *ServiceCheck) {
			c.OnUpdate, c.CheckRestart = "ignore_warnings", &CheckRestart{Limit: 1, IgnoreWarnings: true}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := &Service{Name: "web", Provider: "nomad", PortLabel: "http", Checks: []ServiceCheck{
				{Type: "http", Path: "/", Interval: time.Second, Timeout: time.Second}}}
			c.change(service, &service.Checks[0])
			job := &Job{ID: Ptr("j"), TaskGroups: []*TaskGroup{{Name: Ptr("g"), Services: []*Service{service},
				Networks: []*NetworkResource{{DynamicPorts: []Port{{Label: "http"}}}},
				Tasks:    []*Task{{Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/true"}}}}}}
			job.Canonicalize()
			err := job.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCheckIDs(t *testing.T) {
	s := &Service{Name: "web", PortLabel: "http"}
	seen := map[string]string{}
	for name, id := range map[string]string{
		"plain":      CheckID("a1", "", s, &ServiceCheck{Name: "up", Type: "tcp"}),
		"of a task":  CheckID("a1", "t", s, &ServiceCheck{Name: "up", Type: "tcp"}),
		"elsewhere":  CheckID("a2", "", s, &ServiceCheck{Name: "up", Type: "tcp"}),
		"other port": CheckID("a1", "", &Service{Name: "web", PortLabel: "admin"}, &ServiceCheck{Name: "up", Type: "tcp"}),
		"other":      CheckID("a1", "", s, &ServiceCheck{Name: "up", Type: "tcp", Interval: time.Second}),
	} {
		if len(id) != 32 || seen[id] != "" {
			t.Errorf("%s has the id %s, as has %q", name, id, seen[id])
		}
		seen[id] = name
	}
	if CheckID("a1", "", s, &ServiceCheck{Name: "up"}) != CheckID("a1", "", &Service{Name: "web", PortLabel: "http"}, &ServiceCheck{Name: "up"}) {
		t.Error("the same check has two ids")
	}
}
