package taskenv

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func input() Input {
	task := &structs.Task{
		Name: "web", Meta: map[string]string{"owner": "task", "where": "${node.datacenter}/${meta.rack}"},
		Env: map[string]string{"GREETING": "hi from ${NOMAD_TASK_NAME} on ${attr.kernel.name}", "with-dash": "x", "META": "${NOMAD_META_where}", "PATH": "/own"},
	}
	group := &structs.TaskGroup{Name: structs.Ptr("front"), Tasks: []*structs.Task{task, {Name: "side-car"}}, Meta: map[string]string{"owner": "group", "a-b": "dash"}}
	job := &structs.Job{ID: structs.Ptr("shop/dispatch-1"), Name: structs.Ptr("shop"), ParentID: "shop", Region: structs.Ptr("europe"),
		TaskGroups: []*structs.TaskGroup{group}, Meta: map[string]string{"owner": "job", "team": "blue"}}
	return Input{
		Alloc: &structs.Allocation{
			ID: "6e3a9d0c-1111-4222-8333-444455556666", Name: "shop.front[12]", Namespace: "prod", JobID: "shop/dispatch-1", Job: job, TaskGroup: "front", CreateIndex: 77,
			AllocatedResources: &structs.AllocatedResources{
				Tasks: map[string]*structs.AllocatedTaskResources{
					"web": {Cpu: structs.AllocatedCpuResources{CpuShares: 500, ReservedCores: []uint16{7, 2, 0, 1, 12}},
						Memory: structs.AllocatedMemoryResources{MemoryMB: 256, MemoryMaxMB: 512}},
					"side-car": {Networks: []*structs.NetworkResource{{IP: "10.0.0.9", DynamicPorts: []structs.Port{{Label: "admin", Value: 21000}}}}},
				},
				Shared: structs.AllocatedSharedResources{Ports: []structs.PortMapping{
					{Label: "http", Value: 20001, To: 8080, HostIP: "10.0.0.1"}, {Label: "db-port", Value: 20002, HostIP: "::1"}}},
			},
		},
		Task: task,
		Node: &structs.Node{ID: "node-id", Name: "n1", Datacenter: "dc7", NodeClass: "big", NodePool: "gpu",
			Attributes: map[string]string{"kernel.name": "linux", "unique.hostname": "h"}, Meta: map[string]string{"rack": "r1"}},
		AllocDir: "/a/alloc", LocalDir: "/a/web/local", SecretsDir: "/a/web/secrets",
		CgroupParent: "nomad.slice", APISocket: "/a/web/secrets/api.sock",
		HostEnv: map[string]string{"PATH": "/bin", "HOME": "/root"}, HookEnv: map[string]string{"NOMAD_TOKEN": "t"},
	}
}

func TestEnvironment(t *testing.T) {
	want := strings.Fields(`
		NOMAD_ALLOC_DIR=/a/alloc NOMAD_TASK_DIR=/a/web/local NOMAD_SECRETS_DIR=/a/web/secrets
		NOMAD_MEMORY_LIMIT=256 NOMAD_MEMORY_MAX_LIMIT=512 NOMAD_CPU_LIMIT=500 NOMAD_CPU_CORES=0-2,7,12
		NOMAD_ALLOC_ID=6e3a9d0c-1111-4222-8333-444455556666 NOMAD_SHORT_ALLOC_ID=6e3a9d0c NOMAD_ALLOC_NAME=shop.front[12] NOMAD_ALLOC_INDEX=12
		NOMAD_TASK_NAME=web NOMAD_GROUP_NAME=front NOMAD_JOB_ID=shop/dispatch-1 NOMAD_JOB_NAME=shop NOMAD_JOB_PARENT_ID=shop
		NOMAD_DC=dc7 NOMAD_REGION=europe NOMAD_NAMESPACE=prod NOMAD_ALLOC_FENCE=77
		NOMAD_PARENT_CGROUP=nomad.slice NOMAD_UNIX_ADDR=unix:///a/web/secrets/api.sock
		NOMAD_IP_http=10.0.0.1 NOMAD_PORT_http=8080 NOMAD_ADDR_http=10.0.0.1:20001
		NOMAD_HOST_IP_http=10.0.0.1 NOMAD_HOST_PORT_http=20001 NOMAD_HOST_ADDR_http=10.0.0.1:20001
		NOMAD_ALLOC_IP_http=10.0.0.1 NOMAD_ALLOC_PORT_http=8080 NOMAD_ALLOC_ADDR_http=10.0.0.1:8080
		NOMAD_IP_db_port=::1 NOMAD_PORT_db_port=20002 NOMAD_ADDR_db_port=[::1]:20002
		NOMAD_HOST_IP_db_port=::1 NOMAD_HOST_PORT_db_port=20002 NOMAD_HOST_ADDR_db_port=[::1]:20002
		NOMAD_ALLOC_IP_db_port=::1 NOMAD_ALLOC_PORT_db_port=20002 NOMAD_ALLOC_ADDR_db_port=[::1]:20002
		NOMAD_IP_side_car_admin=10.0.0.9 NOMAD_PORT_side_car_admin=21000 NOMAD_ADDR_side_car_admin=10.0.0.9:21000
		NOMAD_HOST_IP_side_car_admin=10.0.0.9 NOMAD_HOST_PORT_side_car_admin=21000 NOMAD_HOST_ADDR_side_car_admin=10.0.0.9:21000
		NOMAD_META_owner=task NOMAD_META_OWNER=task NOMAD_META_team=blue NOMAD_META_TEAM=blue NOMAD_META_a_b=dash NOMAD_META_A_B=dash
		NOMAD_META_where=dc7/r1 NOMAD_META_WHERE=dc7/r1
		PATH=/own HOME=/root with_dash=x META=dc7/r1 NOMAD_TOKEN=t`)
	got := map[string]string{}
	for k, v := range Build(input()).Map() {
		got[k] = v
	}
	if got["GREETING"] != "hi from web on linux" {
		t.Errorf("GREETING=%q", got["GREETING"])
	}
	delete(got, "GREETING")
	for _, kv := range want {
		k, v, _ := strings.Cut(kv, "=")
		if got[k] != v {
			t.Errorf("%s=%q, want %q", k, got[k], v)
		}
		delete(got, k)
	}
	if len(got) > 0 {
		t.Errorf("not expected: %v", got)
	}
}

func TestLittleIsKnown(t *testing.T) {
	for _, in := range []Input{{}, {Alloc: &structs.Allocation{ID: "x", Name: "odd"}}, {Task: &structs.Task{}}, {Node: &structs.Node{}}} {
		for k, v := range Build(in).Map() {
			if v == "" || strings.HasSuffix(k, "_") {
				t.Errorf("%s=%q", k, v)
			}
		}
	}
}

func TestReplace(t *testing.T) {
	e := Build(input())
	for in, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"${NOMAD_DC}":               "dc7",
		"a${NOMAD_DC}b${NOMAD_DC}c": "adc7bdc7c",
		"${ NOMAD_DC }":             "dc7",
		"${node.unique.id} ${node.unique.name} ${node.class} ${node.pool} ${node.region} ${node.datacenter}": "node-id n1 big gpu europe dc7",
		"${attr.unique.hostname}": "h", "${meta.rack}": "r1",
		`${env["GREETING"]}`: "hi from web on linux", `${env["with_dash"]}`: "x",
		"${unknown}": "${unknown}", "${attr.none}": "${attr.none}", `${env["none"]}`: `${env["none"]}`, "${env[GREETING]}": "${env[GREETING]}", `${env["]}`: `${env["]}`,
		"${": "${", "$NOMAD_DC": "$NOMAD_DC", "${NOMAD_DC": "${NOMAD_DC", "${}": "${}",
		"${x${NOMAD_DC}":  "${xdc7",
		"${X:-default}":   "${X:-default}",
		"$${NOMAD_DC}":    "$dc7",
		"${GREETING}":     "hi from web on linux",
		"${NOMAD_META_A}": "${NOMAD_META_A}",
	} {
		if got := e.Replace(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestRegionOfTheAgentWins(t *testing.T) {
	in := input()
	in.Region = "asia"
	e := Build(in)
	if got := e.Replace("${node.region} ${NOMAD_REGION}"); got != "asia asia" {
		t.Errorf("got %q", got)
	}
}

func TestGroupNetwork(t *testing.T) {
	in := input()
	in.Alloc.NetworkStatus = &structs.AllocNetworkStatus{InterfaceName: "eth0", Address: "172.26.64.5"}
	if e := Build(in); e.Replace("${NOMAD_ALLOC_ADDR_http}") != "10.0.0.1:8080" {
		t.Error("a group in the node's network got another address")
	}
	in.Alloc.Job.TaskGroups[0].Networks = []*structs.NetworkResource{{Mode: "bridge"}}
	e := Build(in)
	if got := e.Replace("${NOMAD_ALLOC_ADDR_http} ${NOMAD_ADDR_http} ${NOMAD_ALLOC_INTERFACE_eth0}"); got != "172.26.64.5:8080 10.0.0.1:20001 eth0" {
		t.Errorf("got %q", got)
	}
}

func TestReplaceConfigAtEachDepth(t *testing.T) {
	in := map[string]any{
		"command": "${NOMAD_TASK_DIR}/run", "args": []any{"${NOMAD_DC}", 1, true, nil, map[string]any{"${NOMAD_DC}": []string{"${meta.rack}"}}},
		"list": []map[string]any{{"k": "${node.class}"}}, "labels": map[string]string{"l": "${node.class}"}, "n": 5, "keep": "${shell}",
	}
	want := map[string]any{
		"command": "/a/web/local/run", "args": []any{"dc7", 1, true, nil, map[string]any{"dc7": []string{"r1"}}},
		"list": []map[string]any{{"k": "big"}}, "labels": map[string]string{"l": "big"}, "n": 5, "keep": "${shell}",
	}
	e := Build(input())
	if got := e.ReplaceConfig(in); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if in["command"] != "${NOMAD_TASK_DIR}/run" || in["list"].([]map[string]any)[0]["k"] != "${node.class}" {
		t.Error("the original was changed")
	}
	if e.ReplaceConfig(nil) != nil {
		t.Error("nil became something")
	}
}

func TestReplaceServices(t *testing.T) {
	in := []*structs.Service{{Name: "${NOMAD_JOB_NAME}-${NOMAD_TASK_NAME}", Tags: []string{"${node.class}"}, Meta: map[string]string{"dc": "${NOMAD_DC}"},
		Checks: []structs.ServiceCheck{{Name: "c-${NOMAD_ALLOC_INDEX}", Path: "/${meta.rack}", Args: []string{"${NOMAD_DC}"}, Header: map[string][]string{"X": {"${NOMAD_DC}"}}}}}}
	got := Build(input()).ReplaceServices(in)
	s := got[0]
	if s.Name != "shop-web" || s.Tags[0] != "big" || s.Meta["dc"] != "dc7" || s.Checks[0].Name != "c-12" || s.Checks[0].Path != "/r1" ||
		s.Checks[0].Args[0] != "dc7" || s.Checks[0].Header["X"][0] != "dc7" {
		t.Errorf("got %+v", s)
	}
	if in[0].Name != "${NOMAD_JOB_NAME}-${NOMAD_TASK_NAME}" || in[0].Checks[0].Path != "/${meta.rack}" || in[0].Tags[0] != "${node.class}" {
		t.Error("the original was changed")
	}
}

func TestHostEnv(t *testing.T) {
	got := HostEnv([]string{"PATH=/bin", "VAULT_TOKEN=x", "EMPTY=", "odd", "=C:=x", "MY_SECRET_1=s", "A=b=c"}, append(DefaultHostEnvDenylist(), "MY_SECRET_*"))
	if want := map[string]string{"PATH": "/bin", "EMPTY": "", "A": "b=c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
