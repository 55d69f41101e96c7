package structs

import (
	"encoding/json"
	"strconv"
)

// ExactNumbers replaces the json.Number values in a free-form value (decoded with UseNumber) by int64, uint64 or
// float64, so that whole numbers stay exact beyond 2^53. Maps and slices are changed in place.
func ExactNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(x), 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(string(x), 10, 64); err == nil {
			return u
		}
		f, err := x.Float64()
		if err != nil {
			return string(x)
		}
		return f
	case map[string]any:
		for k, e := range x {
			x[k] = ExactNumbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = ExactNumbers(e)
		}
	}
	return v
}

// ExactNumbers does so for all free-form values of a job that was decoded from JSON with UseNumber.
func (j *Job) ExactNumbers() {
	if j == nil {
		return
	}
	services := func(list []*Service) {
		for _, s := range list {
			if s != nil {
				s.exactNumbers()
			}
		}
	}
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		services(g.Services)
		if g.Scaling != nil {
			ExactNumbers(g.Scaling.Policy)
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			ExactNumbers(t.Config)
			services(t.Services)
			for _, p := range t.ScalingPolicies {
				if p != nil {
					ExactNumbers(p.Policy)
				}
			}
		}
	}
}

func (s *Service) exactNumbers() {
	c := s.Connect
	if c == nil {
		return
	}
	if c.SidecarTask != nil {
		ExactNumbers(c.SidecarTask.Config)
	}
	if c.SidecarService != nil && c.SidecarService.Proxy != nil {
		ExactNumbers(c.SidecarService.Proxy.Config)
		for _, u := range c.SidecarService.Proxy.Upstreams {
			if u != nil {
				ExactNumbers(u.Config)
			}
		}
	}
	if c.Gateway != nil && c.Gateway.Proxy != nil {
		ExactNumbers(c.Gateway.Proxy.Config)
	}
}
