package driver

import (
	"fmt"
	"maps"
	"slices"
)

// Registry is the set of drivers which a node has, by name. It is built once and then only read.
type Registry struct {
	byName map[string]Driver
}

// NewRegistry makes a registry of the given drivers; two of one name are a fault of the program.
func NewRegistry(drivers ...Driver) (*Registry, error) {
	r := &Registry{byName: make(map[string]Driver, len(drivers))}
	for _, d := range drivers {
		if _, dup := r.byName[d.Name()]; dup {
			return nil, fmt.Errorf("register driver: two drivers are called %q", d.Name())
		}
		r.byName[d.Name()] = d
	}
	return r, nil
}

// Get finds a driver by the name that jobs use.
func (r *Registry) Get(name string) (Driver, bool) {
	d, ok := r.byName[name]
	return d, ok
}

// Names lists the drivers in alphabetical order.
func (r *Registry) Names() []string {
	return slices.Sorted(maps.Keys(r.byName))
}
