package structs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	minCheckInterval = time.Second
	minCheckTimeout  = time.Second
	methodRunes      = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
)

// validateServices checks the services of a group, and what those of its tasks must not be beside them. The tasks'
// own services are checked with their task.
func (tg *TaskGroup) validateServices(s scope) {
	providers := map[string]bool{}
	ids := make([]string, 0, len(tg.Services))
	collect := func(services []*Service) {
		for _, svc := range services {
			providers[svc.Provider] = true
			ids = append(ids, svc.TaskName+"/"+svc.Name+"/"+svc.PortLabel)
		}
	}
	collect(tg.Services)
	for _, svc := range tg.Services {
		svc.validate(s.in("service %q", svc.Name), tg, nil)
	}
	for _, t := range tg.Tasks {
		collect(t.Services)
	}
	if len(providers) > 1 {
		s.addf("all services of a group must have the same provider")
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			s.addf("service %q is there more than once", strings.Split(id, "/")[1])
		}
		seen[id] = true
	}
}

func (svc *Service) validate(s scope, tg *TaskGroup, t *Task) {
	if !interpolated(svc.Name) && !isServiceName(svc.Name) {
		s.addf("name must have 1 to 63 letters, digits and dashes, and neither begin nor end with a dash")
	}
	s.oneOf("provider", svc.Provider, ServiceProviderConsul, ServiceProviderNomad)
	s.oneOf("address_mode", svc.AddressMode, AddressModeAuto, AddressModeHost, AddressModeDriver, AddressModeAlloc,
		AddressModeAllocIPv6)
	s.oneOf("on_update", svc.OnUpdate, OnUpdateRequireHealthy, OnUpdateIgnoreWarnings, OnUpdateIgnore)
	tg.validatePortLabel(s, svc.PortLabel)
	if svc.Address != "" && svc.AddressMode != AddressModeAuto {
		s.addf("address needs address_mode %q", AddressModeAuto)
	}
	if svc.TaskName != "" && tg.LookupTask(svc.TaskName) == nil {
		s.addf("task %q is not in the group", svc.TaskName)
	}
	for i := range svc.Checks {
		svc.Checks[i].validate(s.in("check %d", i+1), svc, tg)
	}
	if svc.Identity != nil {
		s.addf("identity: services get no tokens yet")
	}
	if svc.Connect != nil {
		svc.validateConnect(s.in("connect"), tg, t)
	}
}

// isServiceName says whether name is a label by RFC 1123.
func isServiceName(name string) bool {
	return isName(name, "-", 63) && name[0] != '-' && name[len(name)-1] != '-'
}

// validatePortLabel checks that a port's name is known in the group. A number is a port by itself.
func (tg *TaskGroup) validatePortLabel(s scope, label string) {
	if label == "" || interpolated(label) {
		return
	}
	if n, err := strconv.Atoi(label); err == nil {
		if n < 0 || n > maxPort {
			s.addf("port must be from 0 to %d (it is %d)", maxPort, n)
		}
		return
	}
	networks := slices.Clone(tg.Networks)
	for _, t := range tg.Tasks {
		if t.Resources != nil {
			networks = append(networks, t.Resources.Networks...)
		}
	}
	for _, n := range networks {
		for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
			if p.Label == label {
				return
			}
		}
	}
	s.addf("port %q is not a port of the group", label)
}

func (c *ServiceCheck) validate(s scope, svc *Service, tg *TaskGroup) {
	switch c.Type {
	case CheckTCP, CheckGRPC:
	case CheckHTTP:
		c.validateHTTP(s)
	case CheckScript:
		if c.Command == "" {
			s.addf("command is missing")
		}
		if c.TaskName == "" && svc.TaskName == "" {
			s.addf("a script of a group's service needs the task it runs in")
		}
	default:
		s.addf("type %q is not one of %s", c.Type, quoteList([]string{CheckHTTP, CheckTCP, CheckGRPC, CheckScript}))
	}
	if c.TaskName != "" && !interpolated(c.TaskName) && tg.LookupTask(c.TaskName) == nil {
		s.addf("task %q is not in the group", c.TaskName)
	}
	if c.Interval < minCheckInterval {
		s.addf("interval must be at least %s (it is %s)", minCheckInterval, c.Interval)
	}
	if c.Timeout < minCheckTimeout {
		s.addf("timeout must be at least %s (it is %s)", minCheckTimeout, c.Timeout)
	}
	s.oneOf("initial_status", c.InitialStatus, "", "passing", "warning", "critical")
	s.oneOf("address_mode", c.AddressMode, "", AddressModeHost, AddressModeDriver, AddressModeAlloc, AddressModeAllocIPv6)
	s.oneOf("on_update", c.OnUpdate, OnUpdateRequireHealthy, OnUpdateIgnoreWarnings, OnUpdateIgnore)
	exposed := c.Expose && svc.Provider != ServiceProviderNomad // by the sidecar of a mesh, which has a port for it
	if c.Type != CheckScript && c.PortLabel == "" && svc.PortLabel == "" && !exposed {
		s.addf("port is missing: neither the check nor its service has one")
	}
	tg.validatePortLabel(s, c.PortLabel)
	if r := c.CheckRestart; r != nil {
		s := s.in("check_restart")
		if r.Limit < 0 {
			s.addf("limit must not be negative (it is %d)", r.Limit)
		}
		s.notNegative("grace", Val(r.Grace))
		switch {
		case c.OnUpdate == OnUpdateIgnore:
			s.addf("a check with on_update %q restarts nothing", OnUpdateIgnore)
		case c.OnUpdate == OnUpdateIgnoreWarnings && !r.IgnoreWarnings:
			s.addf("on_update %q needs ignore_warnings", OnUpdateIgnoreWarnings)
		}
	}
	if c.SuccessBeforePassing < 0 || c.FailuresBeforeCritical < 0 || c.FailuresBeforeWarning < 0 {
		s.addf("numbers of results before a change of status must not be negative")
	}
}

func (c *ServiceCheck) validateHTTP(s scope) {
	if c.Path == "" {
		s.addf("path is missing")
	} else if u, err := url.Parse(c.Path); !interpolated(c.Path) && (err != nil || u.IsAbs() || u.Host != "") {
		s.addf("path %q must be the part of a URL after its host", c.Path)
	}
	if !interpolated(c.Protocol) {
		s.oneOf("protocol", c.Protocol, "", "http", "https")
	}
	if !interpolated(c.Method) && strings.ContainsFunc(c.Method, func(r rune) bool { return !strings.ContainsRune(methodRunes, r) }) {
		s.addf("method %q is no method of HTTP", c.Method)
	}
}

func (svc *Service) isGateway() bool { return svc.Connect != nil && svc.Connect.Gateway != nil }

func (svc *Service) validateConnect(s scope, tg *TaskGroup, t *Task) {
	c := svc.Connect
	kinds := 0
	for _, is := range []bool{c.Native, c.SidecarService != nil, c.Gateway != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		s.addf("exactly one of native, sidecar_service and gateway must be there")
	}
	if svc.Provider != ServiceProviderConsul {
		s.addf("needs provider %q", ServiceProviderConsul)
	}
	if t != nil && c.SidecarService != nil {
		s.addf("sidecar_service belongs into a service of a group")
	}
	if c.Native && svc.TaskName == "" {
		s.addf("native needs the name of the task that speaks Connect")
	}
	if svc.isGateway() {
		s.addf("gateway: the proxy of a gateway cannot be run yet")
	}
	if c.SidecarService != nil && t == nil {
		if len(tg.Networks) != 1 {
			s.addf("sidecar_service needs exactly one network in the group")
		} else if m := tg.Networks[0].Mode; m != NetworkModeBridge && m != NetworkModeHost && !strings.HasPrefix(m, "cni/") {
			s.addf("sidecar_service needs a network of mode %q", NetworkModeBridge)
		}
	}
}
