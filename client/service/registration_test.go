package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func testNode() *structs.Node {
	return &structs.Node{ID: "n1", Datacenter: "dc1", Attributes: map[string]string{"unique.network.ip-address": "10.0.0.9"}}
}

func testAlloc() *structs.Allocation {
	return &structs.Allocation{ID: "a1", Namespace: "default", JobID: "web", TaskGroup: "g", NodeID: "n1",
		AllocatedResources: &structs.AllocatedResources{
			Shared: structs.AllocatedSharedResources{Ports: []structs.PortMapping{
				{Label: "http", Value: 20000, To: 8080, HostIP: "10.0.0.1"}, {Label: "plain", Value: 20001}}},
			Tasks: map[string]*structs.AllocatedTaskResources{"t": {Networks: []*structs.NetworkResource{
				{IP: "10.0.0.2", DynamicPorts: []structs.Port{{Label: "old", Value: 20002}}}}}},
		}}
}

func TestWhereAServiceIsReached(t *testing.T) {
	inner := &structs.AllocNetworkStatus{Address: "172.26.0.2", AddressIPv6: "fd00::2"}
	for _, tc := range []struct {
		name string
		s    structs.Service
		task string
		net  *structs.AllocNetworkStatus
		want string // address:port, or what the error says
	}{
		{"label", structs.Service{PortLabel: "http"}, "", nil, "10.0.0.1:20000"},
		{"label, host", structs.Service{PortLabel: "http", AddressMode: "host"}, "", nil, "10.0.0.1:20000"},
		{"label without an address", structs.Service{PortLabel: "plain"}, "", nil, "10.0.0.9:20001"},
		{"literal", structs.Service{PortLabel: "443"}, "", nil, "10.0.0.9:443"},
		{"no port", structs.Service{}, "", nil, "10.0.0.9:0"},
		{"address", structs.Service{PortLabel: "http", Address: "example.com"}, "", nil, "example.com:20000"},
		{"a port of the task", structs.Service{PortLabel: "old"}, "t", nil, "10.0.0.2:20002"},
		{"not of the group", structs.Service{PortLabel: "old"}, "", nil, `port "old" is neither`},
		{"too large", structs.Service{PortLabel: "70000"}, "", nil, `port "70000" is neither`},
		{"alloc", structs.Service{PortLabel: "http", AddressMode: "alloc"}, "", inner, "172.26.0.2:8080"},
		{"alloc without to", structs.Service{PortLabel: "plain", AddressMode: "alloc"}, "", inner, "172.26.0.2:20001"},
		{"alloc literal", structs.Service{PortLabel: "80", AddressMode: "alloc"}, "", inner, "172.26.0.2:80"},
		{"alloc ipv6", structs.Service{PortLabel: "80", AddressMode: "alloc_ipv6"}, "", inner, "fd00::2:80"},
		{"alloc in the host's network", structs.Service{PortLabel: "http", AddressMode: "alloc"}, "", nil, "network of its own"},
		{"driver", structs.Service{PortLabel: "http", AddressMode: "driver"}, "t", nil, "address of its own"},
		{"consul", structs.Service{Provider: "consul"}, "", nil, `provider "consul" is not supported`},
		{"name", structs.Service{Name: "${NOMAD_META_none}"}, "", nil, "the name must have"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.s
			if s.Name == "" {
				s.Name = "web"
			}
			if s.Provider == "" {
				s.Provider = structs.ServiceProviderNomad
			}
			alloc := testAlloc()
			alloc.NetworkStatus = tc.net
			list, err := Registrations(Input{Alloc: alloc, Task: tc.task, Services: []*structs.Service{&s}, Node: testNode()})
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("%s:%d", list[0].Address, list[0].Port)
			}
			if err == nil && got != tc.want || err != nil && !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestIDsAndTags(t *testing.T) {
	alloc := testAlloc()
	services := []*structs.Service{
		{Name: "web", PortLabel: "http", Provider: "nomad", Tags: []string{"live"}, CanaryTags: []string{"canary"}},
		{Name: "db", Provider: "nomad", Tags: []string{"live"}},
	}
	show := func(task string) string {
		t.Helper()
		list, err := Registrations(Input{Alloc: alloc, Task: task, Services: services, Node: testNode()})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range list {
			if !s.OwnID() {
				t.Errorf("id %s is not one of the allocation's", s.ID)
			}
			out = append(out, s.ID+fmt.Sprint(s.Tags))
		}
		return strings.Join(out, " ")
	}
	if got, want := show(""), "_nomad-task-a1-group-g-web-http[live] _nomad-task-a1-group-g-db-[live]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	alloc.DeploymentStatus = &structs.AllocDeploymentStatus{Canary: true}
	if got, want := show("t"), "_nomad-task-a1-t-web-http[canary] _nomad-task-a1-t-db-[live]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	services = append(services, services[0])
	if _, err := Registrations(Input{Alloc: alloc, Services: services, Node: testNode()}); err == nil {
		t.Error("a service was taken twice")
	}
}
