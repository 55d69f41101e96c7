package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/client/artifact"
	"github.com/nomadlite/nomadlite/structs"
)

func TestParseHCLAndJSONGiveTheSame(t *testing.T) {
	inHCL := `
region = "north"
ports { http = 1234 }
client {
  enabled = true
  meta { rack = "r1" }
  options = { "driver.raw_exec.enable" = "1" }
  host_volume "data" { path = "/srv" }
}
server {
  enabled          = true
  bootstrap_expect = 3
  server_join { retry_join = ["a:4647", "b"] }
}
plugin "raw_exec" {
  config {
    enabled = true
    nested { depth = 2 }
  }
}
consul { address = "127.0.0.1:8500" }
`
	inJSON := `{"region": "north", "ports": {"http": 1234},
 "client": {"enabled": true, "meta": {"rack": "r1"}, "options": {"driver.raw_exec.enable": "1"},
            "host_volume": {"data": {"path": "/srv"}}},
 "server": {"enabled": true, "bootstrap_expect": 3, "server_join": {"retry_join": ["a:4647", "b"]}},
 "plugin": {"raw_exec": {"config": {"enabled": true, "nested": {"depth": 2}}}},
 "consul": {"address": "127.0.0.1:8500"}}`
	a, err := Parse("a.hcl", []byte(inHCL))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse("b", []byte(inJSON))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		t.Fatalf("HCL  %s\nJSON %s", x, y)
	}
	if structs.Val(a.Server.BootstrapExpect) != 3 || a.Client.HostVolume[0].Name != "data" {
		t.Fatalf("got %+v", a.Server)
	}
}

func TestUnknownKeysAreRefusedWithTheirPlace(t *testing.T) {
	for name, body := range map[string]string{
		"hcl":   "region = \"x\"\nclient {\n  enabledd = true\n}\n",
		"json":  "{\n\"region\": \"x\", \"client\": {\n \"enabledd\": true}}",
		"block": "clinet {}\n",
	} {
		_, err := Parse("agent.conf", []byte(body))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "agent.conf:") {
			t.Errorf("%s: got %q", name, err)
		}
	}
}

func TestMergeLaterWins(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("10.hcl", "name = \"a\"\nclient {\n  enabled = true\n  meta {\n    a = \"1\"\n    b = \"1\"\n  }\n}\n")
	write("20.json", `{"name": "b", "client": {"enabled": false, "meta": {"b": "2"}}}`)
	write("30.txt", "not read")
	c, err := Load([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "1", "b": "2"}
	if structs.Val(c.Name) != "b" || structs.Val(c.Client.Enabled) || !reflect.DeepEqual(c.Client.Meta, want) {
		t.Fatalf("got %q %v %v", structs.Val(c.Name), structs.Val(c.Client.Enabled), c.Client.Meta)
	}
}

func TestEveryKeyHasATag(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Tag.Get("hcl") == "" {
				t.Errorf("%s.%s has no hcl tag", typ, f.Name)
			}
			e := f.Type
			if e.Kind() == reflect.Slice {
				e = e.Elem()
			}
			if e.Kind() == reflect.Pointer && e.Elem().Kind() == reflect.Struct {
				walk(e.Elem())
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}

func TestLeaving(t *testing.T) {
	client := `data_dir = "/d"
client {
  enabled = true
  servers = ["a"]
  lease   = "30s"
`
	resolve := func(text string) (*Settings, error) {
		t.Helper()
		c, err := Parse("a.hcl", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return Resolve(c, false)
	}
	s, err := resolve("leave_on_terminate = true\nleave_deadline = \"90s\"\n" + client + "drain_on_shutdown { force = true }\n}")
	if err != nil {
		t.Fatal(err)
	}
	if s.Client.Lease != 30*time.Second || s.Client.LeaveDeadline != 90*time.Second || s.Client.DrainOnShutdown.Deadline != -1 {
		t.Errorf("got %+v", s.Client)
	}
	term, interrupt := &Signalled{Signal: syscall.SIGTERM}, &Signalled{Signal: os.Interrupt}
	if !s.leavesOn(term) || s.leavesOn(interrupt) || s.leavesOn(nil) {
		t.Error("it leaves on the wrong signal")
	}
	back, err := resolve("expect_back = \"20m\"\n" + client + "}")
	if err != nil || back.Client.ExpectBack != 20*time.Minute || !back.expectsBack(term) || !back.expectsBack(interrupt) || back.expectsBack(nil) ||
		s.expectsBack(term) {
		t.Errorf("expect_back: %v", err)
	}
	for says, text := range map[string]string{
		`expect_back: "-1m"`:          "expect_back = \"-1m\"\n" + client + "}",
		`expect_back: "later"`:        "expect_back = \"later\"\n" + client + "}",
		"expect_back: 200h0m0s is":    "expect_back = \"200h\"\n" + client + "}",
		"expect_back: a node that":    "expect_back = \"20m\"\nleave_on_interrupt = true\n" + client + "}",
		"drain_on_shutdown: it needs": client + "drain_on_shutdown {}\n}",
		"leave_deadline":              "leave_deadline = \"soon\"\n" + client + "}",
		"client.lease":                strings.Replace(client, "30s", "-1s", 1) + "}",
	} {
		if _, err := resolve(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

func TestLimitsOfTheRPCPort(t *testing.T) {
	for text, want := range map[string]struct {
		conns   int
		timeout time.Duration
		fault   string
	}{
		``: {conns: 100},
		`limits { rpc_max_conns_per_client = 7 }`:   {conns: 7},
		`limits { rpc_max_conns_per_client = 0 }`:   {},
		`limits { rpc_max_conns_per_client = -1 }`:  {fault: "limits.rpc_max_conns_per_client"},
		`limits { rpc_handshake_timeout = "2s" }`:   {conns: 100, timeout: 2 * time.Second},
		`limits { rpc_handshake_timeout = "0s" }`:   {conns: 100, timeout: time.Hour},
		`limits { rpc_handshake_timeout = "soon" }`: {fault: "limits.rpc_handshake_timeout"},
	} {
		c, err := Parse("a.hcl", []byte("data_dir = \"/d\"\nserver {\n enabled = true\n bootstrap_expect = 1\n}\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Resolve(c, false)
		switch {
		case want.fault != "":
			if err == nil || !strings.Contains(err.Error(), want.fault) {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case s.Server.RPCMaxConnsPerClient != want.conns || s.Server.RPCHandshakeTimeout != want.timeout:
			t.Errorf("%s: %d connections, %s", text, s.Server.RPCMaxConnsPerClient, s.Server.RPCHandshakeTimeout)
		}
	}
}

func TestArtifacts(t *testing.T) {
	resolved := func(text string) (*Settings, error) {
		c, err := Parse("a.hcl", []byte("data_dir = \"/d\"\nclient {\n enabled = true\n servers = [\"a\"]\n"+text+"\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return Resolve(c, false)
	}
	s, err := resolved("")
	if err != nil || s.Client.Artifacts != nil {
		t.Errorf("without a block: %+v %v", s.Client.Artifacts, err)
	}
	s, err = resolved(`artifact {
		http_read_timeout = "5m"
		http_max_size = "0"
		decompression_size_limit = "2GiB"
		filesystem_isolation_extra_paths = ["d:rx:/opt/bin"]
		set_environment_variables = "HTTPS_PROXY, NO_PROXY"
	}`)
	want := artifact.DefaultSettings()
	want.HTTPTimeout, want.HTTPMaxSize, want.UnpackedSize = 5*time.Minute, 0, 2<<30
	want.ExtraPaths, want.Environment = []artifact.Path{{Name: "/opt/bin", Dir: true, Read: true, Execute: true}}, []string{"HTTPS_PROXY", "NO_PROXY"}
	if err != nil || !reflect.DeepEqual(*s.Client.Artifacts, want) {
		t.Errorf("%+v %v, want %+v", s.Client.Artifacts, err, want)
	}
	for text, fault := range map[string]string{
		`git_timeout = "soon"`:                               "client.artifact.git_timeout",
		`s3_timeout = "soon"`:                                "client.artifact.s3_timeout",
		`http_max_size = "much"`:                             "client.artifact.http_max_size",
		`decompression_file_count_limit = -1`:                "client.artifact.decompression_file_count_limit",
		`filesystem_isolation_extra_paths = ["/opt/bin"]`:    `"/opt/bin" is not KIND:MODE:PATH`,
		`filesystem_isolation_extra_paths = ["d:rq:/opt/a"]`: `"d:rq:/opt/a" is not KIND:MODE:PATH`,
	} {
		if _, err := resolved("artifact {\n" + text + "\n}"); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
