package template

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	dep "github.com/hashicorp/consul-template/dependency"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

const (
	blockingWait = "5m" // how long a query waits for news
	maxAnswer    = 32 << 20
)

// Servers asks the servers over the node's session.
type Servers struct {
	Conn   http.RoundTripper
	Region string // the node's
}

var _ Source = Servers{}

// Fetch is Source's.
func (s Servers) Fetch(ctx context.Context, namespace string, q Query, index uint64) (Answer, uint64, error) {
	params := url.Values{"namespace": {namespace}}
	if index > 0 {
		params.Set("index", strconv.FormatUint(index, 10))
		params.Set("wait", blockingWait)
	}
	if q.Region != "" && q.Region != s.Region {
		params.Set("region", q.Region)
	}
	switch q.Kind {
	case Service:
		if q.Choose != "" {
			params.Set("choose", q.Choose)
		}
		var list []*structs.ServiceRegistration
		next, err := s.get(ctx, "/v1/service/"+url.PathEscape(q.Name), params, &list)
		return Answer{Services: instances(list, q.Tag)}, next, err
	case Services:
		var list []*structs.ServiceRegistrationListStub
		next, err := s.get(ctx, "/v1/services", params, &list)
		return Answer{Names: names(list)}, next, err
	case Var, VarList:
		return Answer{}, 0, structs.Errorf(structs.CodeNotImplemented, "variables are not stored by this version's servers")
	}
	return Answer{}, 0, structs.Errorf(structs.CodeNotImplemented, "nothing answers %s", q)
}

func (s Servers) get(ctx context.Context, path string, params url.Values, out any) (uint64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path+"?"+params.Encode(), nil)
	if err != nil {
		return 0, structs.Errorf(structs.CodeInvalid, "ask servers: %w", err)
	}
	res, err := s.Conn.RoundTrip(req)
	if err != nil {
		return 0, fmt.Errorf("ask servers: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return 0, route.ReadError(res)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		return 0, fmt.Errorf("read servers' answer: %w", err)
	}
	index, err := strconv.ParseUint(res.Header.Get("X-Nomad-Index"), 10, 64)
	if err != nil || index == 0 {
		return 0, fmt.Errorf("read servers' answer: its index is %q", res.Header.Get("X-Nomad-Index"))
	}
	return index, nil
}

// instances are what templates see of a service, in an order that changes with nothing else.
func instances(list []*structs.ServiceRegistration, tag string) []*dep.NomadService {
	out := []*dep.NomadService{}
	for _, r := range list {
		if tag != "" && !slices.Contains(r.Tags, tag) {
			continue
		}
		tags := slices.Clone(r.Tags)
		slices.Sort(tags)
		out = append(out, &dep.NomadService{ID: r.ID, Name: r.ServiceName, Node: r.NodeID, Address: r.Address, Port: r.Port,
			Datacenter: r.Datacenter, Tags: tags, JobID: r.JobID, AllocID: r.AllocID})
	}
	slices.SortStableFunc(out, func(a, b *dep.NomadService) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

func names(list []*structs.ServiceRegistrationListStub) []*dep.NomadServicesSnippet {
	out := []*dep.NomadServicesSnippet{}
	for _, namespace := range list {
		for _, s := range namespace.Services {
			tags := slices.Clone(s.Tags)
			slices.Sort(tags)
			out = append(out, &dep.NomadServicesSnippet{Name: s.ServiceName, Tags: tags})
		}
	}
	slices.SortFunc(out, func(a, b *dep.NomadServicesSnippet) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
