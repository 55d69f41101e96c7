package structs

// AgentMember is one server of the cluster, as the members list shows it.
type AgentMember struct {
	Name        string
	Addr        string
	Port        uint16
	Tags        map[string]string
	Status      string
	ProtocolMin uint8
	ProtocolMax uint8
	ProtocolCur uint8
	DelegateMin uint8
	DelegateMax uint8
	DelegateCur uint8
}

// ServerMembers is the members list which an agent gives.
type ServerMembers struct {
	ServerName   string
	ServerRegion string
	ServerDC     string
	Members      []*AgentMember
}

// AgentSelf is what an agent says about itself: its configuration, its member and its counters.
type AgentSelf struct {
	Config map[string]any               `json:"config"`
	Member AgentMember                  `json:"member"`
	Stats  map[string]map[string]string `json:"stats"`
}

// AgentHealth says whether one part of an agent (client or server) is well.
type AgentHealth struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

// AgentHealthResponse is the health of an agent's parts; a part that does not run is nil.
type AgentHealthResponse struct {
	Client *AgentHealth `json:"client,omitempty"`
	Server *AgentHealth `json:"server,omitempty"`
}

// NodeMetaApplyRequest changes a node's dynamic metadata: a nil value unsets a key.
type NodeMetaApplyRequest struct {
	NodeID string
	Meta   map[string]*string
}

// NodeMetaResponse is a node's metadata: all of it, what was set at run time, what its configuration says.
type NodeMetaResponse struct {
	Meta    map[string]string
	Dynamic map[string]*string
	Static  map[string]string
}
