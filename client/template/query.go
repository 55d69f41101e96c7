package template

import (
	"fmt"
	"strings"

	dep "github.com/hashicorp/consul-template/dependency"
)

// Kind is the family of what a template looks up.
type Kind string

// The kinds of queries, named like the functions that make them.
const (
	File     Kind = "file"
	Service  Kind = "nomadService"
	Services Kind = "nomadServices"
	Var      Kind = "nomadVar"
	VarList  Kind = "nomadVarList"
)

// Query is one thing that a template looks up. It can be compared.
type Query struct {
	Kind   Kind
	Name   string // of a service or variable, a prefix, or a path as it stands in the template
	Tag    string // only instances with it
	Region string // "" is the task's own
	Choose string // "<count>|<key>": some instances, the same for the same key
}

// String is how events call the query.
func (q Query) String() string {
	name := q.Name
	if q.Tag != "" {
		name = q.Tag + "." + name
	}
	if q.Region != "" {
		name += "@" + q.Region
	}
	kind := map[Kind]string{Service: "nomad.service", Services: "nomad.services", Var: "nomad.var.get", VarList: "nomad.var.list"}[q.Kind]
	if kind == "" {
		kind = string(q.Kind)
	}
	return fmt.Sprintf("%s(%s)", kind, name)
}

// Answer is what a query gave. Fault is one that asking again will not mend: it fails the template where it asked.
type Answer struct {
	Text     string                      `json:",omitempty"` // File
	Services []*dep.NomadService         `json:",omitempty"` // Service
	Names    []*dep.NomadServicesSnippet `json:",omitempty"` // Services
	Fault    string                      `json:",omitempty"`
}

// serviceQuery reads "[tag.]name[@region]".
func serviceQuery(text string) (Query, error) {
	// The engine's own parser says what is well-formed.
	if _, err := dep.NewNomadServiceQuery(text); err != nil {
		return Query{}, err
	}
	q := Query{Kind: Service, Name: text}
	if name, region, ok := strings.Cut(q.Name, "@"); ok {
		q.Name, q.Region = name, region
	}
	if i := strings.LastIndexByte(q.Name, '.'); i >= 0 {
		q.Tag, q.Name = q.Name[:i], q.Name[i+1:]
	}
	return q, nil
}
