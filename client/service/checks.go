package service

import (
	"net"
	"strconv"

	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/structs"
)

// checks makes what is to be asked of the services. plain are the same services before interpolation, by which checks
// are named. It tells all faults at once.
func (in Input) checks(plain []*structs.Service) ([]check.Spec, error) {
	var errs structs.Errors
	var out []check.Spec
	seen := map[string]bool{}
	for i, s := range in.Services {
		for j := range s.Checks {
			c := &s.Checks[j]
			id := structs.CheckID(in.Alloc.ID, in.Task, plain[i], &plain[i].Checks[j])
			if seen[id] {
				continue
			}
			seen[id] = true
			spec := check.Spec{ID: id, Check: *c, Service: s.Name, Group: in.Alloc.Name, Task: in.Task, On: in.asked(s, c)}
			if c.Type != structs.CheckScript {
				address, err := in.locateCheck(s, c)
				if err != nil {
					errs.Addf("service %q: check %q: %w", s.Name, c.Name, err)
					continue
				}
				spec.Address = address
			}
			out = append(out, spec)
		}
	}
	return out, errs.Err()
}

// asked is the task that a check is about: its own, else its service's; empty for all main tasks.
func (in Input) asked(s *structs.Service, c *structs.ServiceCheck) string {
	switch {
	case in.Task != "":
		return in.Task
	case c.TaskName != "":
		return c.TaskName
	}
	return s.TaskName
}

// locateCheck finds where a check asks. Its port is the service's unless it has one; its address mode is its own, and
// host by default. A service's address counts for its checks too.
func (in Input) locateCheck(s *structs.Service, c *structs.ServiceCheck) (string, error) {
	at := *s
	at.Address = ""
	if s.AddressMode == structs.AddressModeAuto && c.AddressMode == "" {
		at.Address = s.Address
	}
	at.AddressMode = structs.AddressModeHost
	if c.AddressMode != "" {
		at.AddressMode = c.AddressMode
	}
	if c.PortLabel != "" {
		at.PortLabel = c.PortLabel
	}
	address, port, err := in.locate(&at)
	if err != nil {
		return "", err
	}
	if port == 0 {
		return "", structs.Errorf(structs.CodeInvalid, "it has no port")
	}
	return net.JoinHostPort(address, strconv.Itoa(port)), nil
}
