package structs

import (
	"encoding/json"
	"fmt"
	"time"
)

// nodePoolJSON is a node pool as the public API writes it: its duration is text.
type nodePoolJSON struct {
	Name                   string
	Description            string
	Meta                   map[string]string
	NodeIdentityTTL        any
	SchedulerConfiguration *NodePoolSchedulerConfiguration
	CreateIndex            uint64
	ModifyIndex            uint64
}

// MarshalJSON writes NodeIdentityTTL as a duration such as "24h0m0s", and empty when there is none.
func (n NodePool) MarshalJSON() ([]byte, error) {
	out := nodePoolJSON{n.Name, n.Description, n.Meta, "", n.SchedulerConfiguration, n.CreateIndex, n.ModifyIndex}
	if n.NodeIdentityTTL != 0 {
		out.NodeIdentityTTL = n.NodeIdentityTTL.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads NodeIdentityTTL as a duration or as nanoseconds.
func (n *NodePool) UnmarshalJSON(data []byte) error {
	var in nodePoolJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*n = NodePool{
		Name: in.Name, Description: in.Description, Meta: in.Meta, SchedulerConfiguration: in.SchedulerConfiguration,
		CreateIndex: in.CreateIndex, ModifyIndex: in.ModifyIndex,
	}
	switch ttl := in.NodeIdentityTTL.(type) {
	case nil:
	case float64:
		n.NodeIdentityTTL = time.Duration(ttl)
	case string:
		if ttl == "" {
			break
		}
		var err error
		if n.NodeIdentityTTL, err = time.ParseDuration(ttl); err != nil {
			return fmt.Errorf("NodeIdentityTTL %q is no duration such as 24h", ttl)
		}
	default:
		return fmt.Errorf("NodeIdentityTTL must be a duration such as \"24h\"")
	}
	return nil
}
