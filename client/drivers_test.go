package client

import (
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestWhichDriversANodeHas(t *testing.T) {
	yes, no := structs.Ptr(true), structs.Ptr(false)
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"only docker unless enabled", Config{}, "docker"},
		{"a dev agent has all", Config{DevMode: true}, "docker mock_driver raw_exec"},
		{"plugin block", Config{Drivers: map[string]DriverConfig{"raw_exec": {Enabled: yes}}}, "docker raw_exec"},
		{"plugin block against dev mode", Config{DevMode: true, Drivers: map[string]DriverConfig{"raw_exec": {Enabled: no}}}, "docker mock_driver"},
		{"older option", Config{Options: map[string]string{"driver.raw_exec.enable": "1"}}, "docker raw_exec"},
		{"allow list", Config{DevMode: true, Options: map[string]string{"driver.allowlist": "raw_exec, docker"}}, "docker raw_exec"},
		{"deny list", Config{DevMode: true, Options: map[string]string{"driver.denylist": "raw_exec, docker"}}, "mock_driver"},
	} {
		c.cfg.DataDir = t.TempDir()
		client, err := New(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		registry, err := client.registry()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(registry.Names(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestOptionsOfRawExec(t *testing.T) {
	for _, c := range []struct {
		options map[string]any
		fault   string
	}{
		{map[string]any{"no_cgroups": true, "denied_envvars": []any{"AWS_*"}, "denied_host_uids": "0,10-15", "denied_host_gids": 5}, ""},
		{map[string]any{"no_cgroups": "perhaps"}, "perhaps"},
		{map[string]any{"denied_envvars": "AWS_*"}, "a list of strings is wanted"},
		{map[string]any{"denied_envvars": []any{1}}, "a list of strings is wanted"},
		{map[string]any{"denied_host_uids": "x"}, `"x"`},
	} {
		client, err := New(Config{DataDir: t.TempDir(), Drivers: map[string]DriverConfig{"raw_exec": {Enabled: structs.Ptr(true), Options: c.options}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.registry()
		if (err == nil) != (c.fault == "") || (err != nil && !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%v: %v", c.options, err)
		}
	}
}
