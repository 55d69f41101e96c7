package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (c *ConsulConnect) Copy() *ConsulConnect {
	if c == nil {
		return nil
	}
	out := *c
	out.Gateway = c.Gateway.Copy()
	out.SidecarService = c.SidecarService.Copy()
	out.SidecarTask = c.SidecarTask.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulSidecarService) Copy() *ConsulSidecarService {
	if c == nil {
		return nil
	}
	out := *c
	out.Tags = slices.Clone(c.Tags)
	out.Proxy = c.Proxy.Copy()
	out.Meta = maps.Clone(c.Meta)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (s *SidecarTask) Copy() *SidecarTask {
	if s == nil {
		return nil
	}
	out := *s
	out.Config = copyAnyMap(s.Config)
	out.Env = maps.Clone(s.Env)
	out.Resources = s.Resources.Copy()
	out.Meta = maps.Clone(s.Meta)
	out.KillTimeout = copyPtr(s.KillTimeout)
	out.LogConfig = s.LogConfig.Copy()
	out.ShutdownDelay = copyPtr(s.ShutdownDelay)
	out.VolumeMounts = copySlice(s.VolumeMounts)
	out.Identities = copySlice(s.Identities)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulProxy) Copy() *ConsulProxy {
	if c == nil {
		return nil
	}
	out := *c
	out.Expose = c.Expose.Copy()
	out.ExposeConfig = c.ExposeConfig.Copy()
	out.Upstreams = copySlice(c.Upstreams)
	out.TransparentProxy = c.TransparentProxy.Copy()
	out.Config = copyAnyMap(c.Config)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulUpstream) Copy() *ConsulUpstream {
	if c == nil {
		return nil
	}
	out := *c
	out.MeshGateway = c.MeshGateway.Copy()
	out.Config = copyAnyMap(c.Config)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulMeshGateway) Copy() *ConsulMeshGateway {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulExposeConfig) Copy() *ConsulExposeConfig {
	if c == nil {
		return nil
	}
	out := *c
	out.Paths = copySlice(c.Paths)
	out.Path = copySlice(c.Path)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulExposePath) Copy() *ConsulExposePath {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulTransparentProxy) Copy() *ConsulTransparentProxy {
	if c == nil {
		return nil
	}
	out := *c
	out.ExcludeInboundPorts = slices.Clone(c.ExcludeInboundPorts)
	out.ExcludeOutboundPorts = slices.Clone(c.ExcludeOutboundPorts)
	out.ExcludeOutboundCIDRs = slices.Clone(c.ExcludeOutboundCIDRs)
	out.ExcludeUIDs = slices.Clone(c.ExcludeUIDs)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulGateway) Copy() *ConsulGateway {
	if c == nil {
		return nil
	}
	out := *c
	out.Proxy = c.Proxy.Copy()
	out.Ingress = c.Ingress.Copy()
	out.Terminating = c.Terminating.Copy()
	out.Mesh = c.Mesh.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulGatewayProxy) Copy() *ConsulGatewayProxy {
	if c == nil {
		return nil
	}
	out := *c
	out.ConnectTimeout = copyPtr(c.ConnectTimeout)
	out.EnvoyGatewayBindAddresses = copyMap(c.EnvoyGatewayBindAddresses)
	out.Config = copyAnyMap(c.Config)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulGatewayBindAddress) Copy() *ConsulGatewayBindAddress {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulGatewayTLSConfig) Copy() *ConsulGatewayTLSConfig {
	if c == nil {
		return nil
	}
	out := *c
	out.CipherSuites = slices.Clone(c.CipherSuites)
	out.SDS = c.SDS.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulGatewayTLSSDSConfig) Copy() *ConsulGatewayTLSSDSConfig {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulHTTPHeaderModifiers) Copy() *ConsulHTTPHeaderModifiers {
	if c == nil {
		return nil
	}
	out := *c
	out.Add = maps.Clone(c.Add)
	out.Set = maps.Clone(c.Set)
	out.Remove = slices.Clone(c.Remove)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulIngressConfigEntry) Copy() *ConsulIngressConfigEntry {
	if c == nil {
		return nil
	}
	out := *c
	out.TLS = c.TLS.Copy()
	out.Listeners = copySlice(c.Listeners)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulIngressListener) Copy() *ConsulIngressListener {
	if c == nil {
		return nil
	}
	out := *c
	out.Services = copySlice(c.Services)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulIngressService) Copy() *ConsulIngressService {
	if c == nil {
		return nil
	}
	out := *c
	out.Hosts = slices.Clone(c.Hosts)
	out.TLS = c.TLS.Copy()
	out.RequestHeaders = c.RequestHeaders.Copy()
	out.ResponseHeaders = c.ResponseHeaders.Copy()
	out.MaxConnections = copyPtr(c.MaxConnections)
	out.MaxPendingRequests = copyPtr(c.MaxPendingRequests)
	out.MaxConcurrentRequests = copyPtr(c.MaxConcurrentRequests)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulLinkedService) Copy() *ConsulLinkedService {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulTerminatingConfigEntry) Copy() *ConsulTerminatingConfigEntry {
	if c == nil {
		return nil
	}
	out := *c
	out.Services = copySlice(c.Services)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ConsulMeshConfigEntry) Copy() *ConsulMeshConfigEntry {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}
