package structs

// NodeServicesRequest changes what a node offers in the cluster's service registry. It travels as CBOR over the
// node's session, see node_protocol.go.
type NodeServicesRequest struct {
	NodeID   string
	SecretID string
	// Complete says that Upsert is everything that the node offers: what else is registered of it goes.
	Complete bool
	// Upsert are registrations; of each only ID, ServiceName, AllocID, Tags, Address and Port count.
	Upsert []*ServiceRegistration
	// Delete are registrations that are to go.
	Delete []ServiceKey
}

// ServiceKey names a registration.
type ServiceKey struct {
	Namespace string
	ID        string
}
