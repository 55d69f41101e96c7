package fingerprint

import (
	"context"
	"maps"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// driverLimit bounds one driver's answer; a driver that does not answer is not there.
const driverLimit = 10 * time.Second

// Drivers asks every driver of the registry how it is, side by side. Drivers that are not detected are left out.
func Drivers(ctx context.Context, registry *driver.Registry, now time.Time) map[string]*structs.DriverInfo {
	type answer struct {
		name   string
		health driver.Health
	}
	names := registry.Names()
	answers := make(chan answer, len(names))
	for _, name := range names {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, driverLimit)
			defer cancel()
			d, _ := registry.Get(name)
			answers <- answer{name, d.Fingerprint(ctx)}
		}()
	}
	out := make(map[string]*structs.DriverInfo, len(names))
	for range names {
		a := <-answers
		if !a.health.Detected {
			continue
		}
		out[a.name] = &structs.DriverInfo{
			Attributes: maps.Clone(a.health.Attributes), Detected: true, Healthy: a.health.Healthy,
			HealthDescription: a.health.Description, UpdateTime: now.UTC(),
		}
	}
	return out
}

// SetDrivers puts the drivers and their attributes on node. It says whether anything but times changed.
func SetDrivers(node *structs.Node, drivers map[string]*structs.DriverInfo) bool {
	changed := len(node.Drivers) != len(drivers)
	for name, d := range drivers {
		old := node.Drivers[name]
		if old != nil && old.Healthy == d.Healthy && old.HealthDescription == d.HealthDescription &&
			maps.Equal(old.Attributes, d.Attributes) {
			d.UpdateTime = old.UpdateTime
			continue
		}
		changed = true
	}
	if !changed {
		return false
	}
	attrs := maps.Clone(node.Attributes)
	if attrs == nil {
		attrs = map[string]string{}
	}
	for _, old := range node.Drivers {
		for k := range old.Attributes {
			delete(attrs, k)
		}
	}
	for _, d := range drivers {
		if d.Healthy {
			maps.Copy(attrs, d.Attributes)
		}
	}
	node.Attributes, node.Drivers = attrs, drivers
	return true
}
