package client

import "github.com/nomadlite/nomadlite/client/servers"

// Ready is closed once the servers have confirmed a first heartbeat: the node may get allocations.
func (c *Client) Ready() <-chan struct{} { return c.registered.ch }

// Health says whether the node is in touch with its servers; reason is for people.
func (c *Client) Health() (ok bool, reason string) {
	if err := c.Healthy(); err != nil {
		return false, err.Error()
	}
	return true, "ok"
}

// Forwarder takes requests of the agent's HTTP port to the servers. It works once Start has returned.
func (c *Client) Forwarder() *servers.Forwarder { return c.servers.Forwarder() }

// Serves says whether this node itself answers for the allocation or node that a request names; one that names
// neither is for this node.
func (c *Client) Serves(allocID, nodeID string) bool {
	if allocID != "" {
		_, err := c.runner(allocID)
		return err == nil
	}
	return nodeID == "" || nodeID == c.nodeID
}
