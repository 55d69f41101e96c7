package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (n *Namespace) Copy() *Namespace {
	if n == nil {
		return nil
	}
	out := *n
	out.Capabilities = n.Capabilities.Copy()
	out.NodePoolConfiguration = n.NodePoolConfiguration.Copy()
	out.VaultConfiguration = n.VaultConfiguration.Copy()
	out.ConsulConfiguration = n.ConsulConfiguration.Copy()
	out.Meta = maps.Clone(n.Meta)
	out.RequiredExtraClaims = maps.Clone(n.RequiredExtraClaims)
	out.OptionalExtraClaims = maps.Clone(n.OptionalExtraClaims)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NamespaceCapabilities) Copy() *NamespaceCapabilities {
	if n == nil {
		return nil
	}
	out := *n
	out.EnabledTaskDrivers = slices.Clone(n.EnabledTaskDrivers)
	out.DisabledTaskDrivers = slices.Clone(n.DisabledTaskDrivers)
	out.EnabledNetworkModes = slices.Clone(n.EnabledNetworkModes)
	out.DisabledNetworkModes = slices.Clone(n.DisabledNetworkModes)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NamespaceNodePoolConfiguration) Copy() *NamespaceNodePoolConfiguration {
	if n == nil {
		return nil
	}
	out := *n
	out.Allowed = slices.Clone(n.Allowed)
	out.Denied = slices.Clone(n.Denied)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NamespaceVaultConfiguration) Copy() *NamespaceVaultConfiguration {
	if n == nil {
		return nil
	}
	out := *n
	out.Allowed = slices.Clone(n.Allowed)
	out.Denied = slices.Clone(n.Denied)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NamespaceConsulConfiguration) Copy() *NamespaceConsulConfiguration {
	if n == nil {
		return nil
	}
	out := *n
	out.Allowed = slices.Clone(n.Allowed)
	out.Denied = slices.Clone(n.Denied)
	return &out
}
