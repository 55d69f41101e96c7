package docker

import (
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Plugin is the agent's plugin "docker" block.
type Plugin struct {
	Endpoint             string // "" means what DOCKER_HOST says, or else the usual socket
	AllowPrivileged      bool
	AllowCaps            []string // lower case, without cap_; "all" for every one
	AllowRuntimes        []string
	Volumes              bool     // tasks may mount paths of the host
	ExtraLabels          []string // shell patterns
	AuthFile, AuthHelper string
	PidsLimit            int64 // of tasks that set none, and the most they may set; 0 for none
	DisableLogCollection bool
}

// defaultCaps are the capabilities of a container, and those which a task may ask for where the plugin names no others.
func defaultCaps() []string {
	return []string{"audit_write", "chown", "dac_override", "fowner", "fsetid", "kill", "mknod", "net_bind_service", "setfcap",
		"setgid", "setpcap", "setuid", "sys_chroot"}
}

// ParsePlugin reads the plugin block; all faults at once.
func ParsePlugin(options map[string]any) (Plugin, error) {
	var faults structs.Errors
	b := newBlock("", options, &faults)
	p := Plugin{
		Endpoint: b.text("endpoint"), AllowPrivileged: b.yes("allow_privileged"), ExtraLabels: b.list("extra_labels"),
		PidsLimit: b.number("pids_limit", 0), DisableLogCollection: b.yes("disable_log_collection"),
		AllowCaps: capNames(b.list("allow_caps")), AllowRuntimes: b.list("allow_runtimes"),
	}
	if len(p.AllowCaps) == 0 {
		p.AllowCaps = defaultCaps()
	}
	if len(p.AllowRuntimes) == 0 {
		p.AllowRuntimes = []string{"runc", "nvidia"}
	}
	for _, v := range b.blocks("volumes") {
		p.Volumes = v.yes("enabled")
		v.end()
	}
	for _, a := range b.blocks("auth") {
		p.AuthFile, p.AuthHelper = a.text("config"), a.text("helper")
		a.end()
	}
	b.end()
	return p, faults.Err()
}

func capNames(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.TrimPrefix(strings.ToLower(n), "cap_")
	}
	return out
}

// capabilities are those a container gets: the usual ones that the node allows, without drop, and add.
func (p *Plugin) capabilities(add, drop []string) (caps, refused []string) {
	allowed := func(c string) bool { return slices.Contains(p.AllowCaps, "all") || slices.Contains(p.AllowCaps, c) }
	drop = capNames(drop)
	for _, c := range defaultCaps() {
		if allowed(c) && !slices.Contains(drop, c) && !slices.Contains(drop, "all") {
			caps = append(caps, c)
		}
	}
	for _, c := range capNames(add) {
		switch {
		case !allowed(c):
			refused = append(refused, c)
		case !slices.Contains(caps, c):
			caps = append(caps, c)
		}
	}
	return caps, refused
}
