package endpoint

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func TestNodeMaintenance(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	path := "/v1/node/" + node.ID + "/maintenance"
	for says, req := range map[string]structs.NodeMaintenanceRequest{
		"above 0":             {},
		"must be a duration":  {For: -time.Second},
		"has to be forced":    {For: 8 * 24 * time.Hour},
		"exclude each other":  {For: time.Hour, Disable: true},
		"does not match the ": {NodeID: "x", For: time.Hour},
	} {
		s.call("PUT", path, req).says(400, says)
	}
	s.call("PUT", "/v1/node/none/maintenance", structs.NodeMaintenanceRequest{For: time.Hour}).says(404, "node not found")
	if n := s.backend.Store.Node(nil, node.ID); n.Maintenance != nil {
		t.Errorf("a refused request announced %+v", n.Maintenance)
	}
	var out structs.NodeMaintenanceResponse
	s.call("PUT", path, structs.NodeMaintenanceRequest{For: 8 * 24 * time.Hour, Force: true}).want(200, &out)
	s.call("PUT", path, structs.NodeMaintenanceRequest{For: time.Hour, Reason: "new disk"}).want(200, &out)
	n := s.backend.Store.Node(nil, node.ID)
	if m := n.Maintenance; m == nil || m.Until.Sub(m.Since) < time.Hour || m.Reason != "new disk" || n.Ready() ||
		n.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("maintenance %+v, eligibility %s, ready %v", m, n.SchedulingEligibility, n.Ready())
	}
	s.call("PUT", path, structs.NodeMaintenanceRequest{Disable: true}).want(200, &out)
	if n := s.backend.Store.Node(nil, node.ID); n.Maintenance != nil || out.Maintenance != nil {
		t.Errorf("maintenance %+v goes on", n.Maintenance)
	}
	s.call("PUT", path, structs.NodeMaintenanceRequest{Disable: true}).want(200, &out) // again: nothing to do
}
