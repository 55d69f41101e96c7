package structs

import "time"

// NodeMaintenance is a downtime that was announced: until Until the node may be silent without losing what runs there.
type NodeMaintenance struct {
	Since  time.Time
	Until  time.Time
	Reason string
}

// Copy gives a copy, nil of nil.
func (m *NodeMaintenance) Copy() *NodeMaintenance { return copyPtr(m) }

// Covers says that the downtime is not over at now. It is false for nil.
func (m *NodeMaintenance) Covers(now time.Time) bool { return m != nil && now.Before(m.Until) }
