package structs

import (
	"slices"
	"strings"
)

// ServiceRegistration is one instance of a service in the cluster's own registry: a service of provider nomad with the
// address at which one allocation offers it.
type ServiceRegistration struct {
	// ID is unique in the cluster and stays the same for the life of the allocation; see ServiceID.
	ID          string
	ServiceName string
	Namespace   string
	NodeID      string
	Datacenter  string
	JobID       string
	AllocID     string
	Tags        []string
	Address     string
	Port        int
	CreateIndex uint64
	ModifyIndex uint64
}

// ServiceRegistrationListStub is the services of one namespace.
type ServiceRegistrationListStub struct {
	Namespace string
	Services  []*ServiceRegistrationStub
}

// ServiceRegistrationStub is a service with the tags of all its instances, each once.
type ServiceRegistrationStub struct {
	ServiceName string
	Tags        []string
}

// Beginnings of registrations' ids, and of the owner in that of a group's service.
const (
	serviceIDPrefix    = "_nomad-task-"
	serviceGroupPrefix = "group-"
)

// ServiceID is the id of a registration: of a group's service when task is empty, else of the task's.
func ServiceID(allocID, group, task string, s *Service) string {
	owner := task
	if owner == "" {
		owner = serviceGroupPrefix + group
	}
	return serviceIDPrefix + allocID + "-" + owner + "-" + s.Name + "-" + s.PortLabel
}

// OwnID says whether the registration's id is one that its allocation may have.
func (r *ServiceRegistration) OwnID() bool {
	return r.AllocID != "" && strings.HasPrefix(r.ID, serviceIDPrefix+r.AllocID+"-")
}

// ValidServiceName says whether a service may be called so, once everything in its name is interpolated.
func ValidServiceName(name string) bool { return isServiceName(name) }

// serviceWarnings tells what the services of a group will not get, though nothing is wrong with them.
func (tg *TaskGroup) serviceWarnings(add func(format string, args ...any)) {
	all := slices.Clone(tg.Services)
	for _, t := range tg.Tasks {
		all = append(all, t.Services...)
	}
	for _, s := range all {
		if s.Provider == ServiceProviderConsul {
			add("Group %q: service %q has the provider %q, which needs a node with a Consul agent; provider %q needs none",
				Val(tg.Name), s.Name, s.Provider, ServiceProviderNomad)
		}
	}
}
