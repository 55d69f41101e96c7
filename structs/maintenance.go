package structs

import "time"

// NodeMaintenance is a downtime that was announced: until Until the node may be silent without losing what runs there.
type NodeMaintenance struct {
	Since  time.Time
	Until  time.Time
	Reason string
	// UntilBack says that the node's agent announced it: then it also ends when the node is back. One that an operator
	// announced stays until Until.
	UntilBack bool `json:",omitempty"`
}

// Copy gives a copy, nil of nil.
func (m *NodeMaintenance) Copy() *NodeMaintenance { return copyPtr(m) }

// Covers says that the downtime is not over at now. It is false for nil.
func (m *NodeMaintenance) Covers(now time.Time) bool { return m != nil && now.Before(m.Until) }
