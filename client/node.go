package client

import (
	"context"
	"maps"
	"os"
	"time"

	"github.com/nomadlite/nomadlite/client/fingerprint"
	"github.com/nomadlite/nomadlite/structs"
)

// describe makes the node from the configuration and what can be found out.
func (c *Client) describe(ctx context.Context) (*structs.Node, error) {
	name := c.cfg.Name
	if name == "" {
		name, _ = os.Hostname()
	}
	if name == "" {
		name = c.nodeID
	}
	node := &structs.Node{
		ID: c.nodeID, SecretID: c.secret, Name: name, Datacenter: c.cfg.Datacenter,
		NodeClass: c.cfg.NodeClass, NodePool: c.cfg.NodePool, HTTPAddr: c.cfg.HTTPAddr, TLSEnabled: c.cfg.HTTPTLS,
		Meta: maps.Clone(c.cfg.Meta), Status: structs.NodeStatusInit, CgroupParent: c.cfg.CgroupParent,
		NodeMaxAllocs: c.cfg.NodeMaxAllocs, HostVolumes: c.cfg.HostVolumes,
		Lease: c.cfg.Lease, MaxKillTimeout: c.cfg.MaxKillTimeout,
	}
	if node.Meta == nil {
		node.Meta = map[string]string{}
	}
	if c.cfg.DefaultIneligible {
		node.SchedulingEligibility = structs.NodeIneligible
	}
	err := fingerprint.Host(ctx, fingerprint.Config{
		AllocDir: c.cfg.AllocDir, NetworkInterface: c.cfg.NetworkInterface, NetworkSpeed: c.cfg.NetworkSpeed,
		PreferIPv6: c.cfg.PreferIPv6, HostNetworks: c.cfg.HostNetworks, CPUTotalCompute: c.cfg.CPUTotalCompute,
		MemoryTotalMB: c.cfg.MemoryTotalMB, DiskTotalMB: c.cfg.DiskTotalMB, DiskFreeMB: c.cfg.DiskFreeMB,
		ReservableCores: c.cfg.ReservableCores, MinDynamicPort: c.cfg.MinDynamicPort, MaxDynamicPort: c.cfg.MaxDynamicPort,
		Reserved: c.cfg.Reserved, AdvertiseAddr: c.cfg.HTTPAddr, ServiceDiscovery: c.cfg.ServiceDiscovery,
	}, node)
	if err != nil {
		return nil, err
	}
	fingerprint.SetDrivers(node, fingerprint.Drivers(ctx, c.drivers, time.Now()))
	node.Canonicalize()
	node.ComputeClass()
	return node, nil
}

// probe asks the drivers from time to time how they are, and tells the servers what changed.
func (c *Client) probe(ctx context.Context) {
	for pause(ctx, probeInterval, nil) {
		if c.lookAtDrivers(fingerprint.Drivers(ctx, c.drivers, time.Now())) {
			c.log.Info("drivers changed")
			nudge(c.wakeDuty)
		}
	}
}

// lookAtDrivers says whether what was found makes another node.
func (c *Client) lookAtDrivers(found map[string]*structs.DriverInfo) bool {
	c.nodeMu.Lock()
	defer c.nodeMu.Unlock()
	node := *c.Node()
	if !fingerprint.SetDrivers(&node, found) {
		return false
	}
	node.ComputeClass()
	c.node.Store(&node)
	c.reregister.Store(true)
	return true
}
