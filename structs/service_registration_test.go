package structs

import (
	"strings"
	"testing"
)

func TestServiceWarnings(t *testing.T) {
	j := oneTask(JobTypeService)
	tg := j.TaskGroups[0]
	tg.Networks = []*NetworkResource{{DynamicPorts: []Port{{Label: "http"}}}}
	tg.Services = []*Service{{Name: "web", PortLabel: "http", Provider: ServiceProviderNomad}}
	j.Canonicalize()
	if w := j.Warnings(); len(w) != 0 {
		t.Errorf("got %q", w)
	}
	tg.Services = append(tg.Services, &Service{Name: "checked", PortLabel: "http", Provider: ServiceProviderNomad,
		Checks: []ServiceCheck{{Type: "tcp"}}})
	tg.Tasks[0].Services = []*Service{{Name: "db", PortLabel: "http"}}
	j.Canonicalize()
	w := j.Warnings()
	if len(w) != 1 || !strings.Contains(w[0], `"db" has the provider "consul"`) {
		t.Errorf("got %q", w)
	}
}

func TestServiceIDs(t *testing.T) {
	s := &Service{Name: "web", PortLabel: "http"}
	for task, want := range map[string]string{"": "_nomad-task-a-group-g-web-http", "t": "_nomad-task-a-t-web-http"} {
		r := &ServiceRegistration{ID: ServiceID("a", "g", task, s), AllocID: "a"}
		if r.ID != want || !r.OwnID() {
			t.Errorf("got %s, want %s", r.ID, want)
		}
	}
	for _, r := range []*ServiceRegistration{{ID: "_nomad-task--t-web-"}, {ID: "_nomad-task-ab-t-web-", AllocID: "a"}, {ID: "web", AllocID: "a"}} {
		if r.OwnID() {
			t.Errorf("%+v is said to be its allocation's", r)
		}
	}
}
