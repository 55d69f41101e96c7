package structs

// Namespace is documented with the public API.
type Namespace struct {
	Name                  string
	Description           string
	Quota                 string
	Capabilities          *NamespaceCapabilities          `hcl:"capabilities,block"`
	NodePoolConfiguration *NamespaceNodePoolConfiguration `hcl:"node_pool_config,block"`
	VaultConfiguration    *NamespaceVaultConfiguration    `hcl:"vault,block"`
	ConsulConfiguration   *NamespaceConsulConfiguration   `hcl:"consul,block"`
	Meta                  map[string]string
	CreateIndex           uint64
	ModifyIndex           uint64
	RequiredExtraClaims   map[string]string
	OptionalExtraClaims   map[string]string
}

// NamespaceCapabilities is documented with the public API.
type NamespaceCapabilities struct {
	EnabledTaskDrivers   []string `hcl:"enabled_task_drivers"`
	DisabledTaskDrivers  []string `hcl:"disabled_task_drivers"`
	EnabledNetworkModes  []string `hcl:"enabled_network_modes"`
	DisabledNetworkModes []string `hcl:"disabled_network_modes"`
}

// NamespaceNodePoolConfiguration is documented with the public API.
type NamespaceNodePoolConfiguration struct {
	Default string
	Allowed []string
	Denied  []string
}

// NamespaceVaultConfiguration is documented with the public API.
type NamespaceVaultConfiguration struct {
	Default string
	Allowed []string
	Denied  []string
}

// NamespaceConsulConfiguration is documented with the public API.
type NamespaceConsulConfiguration struct {
	Default string
	Allowed []string
	Denied  []string
}
