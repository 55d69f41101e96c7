package template

import (
	"errors"
	"fmt"
	"strings"
	texttemplate "text/template"

	dep "github.com/hashicorp/consul-template/dependency"
	engine "github.com/hashicorp/consul-template/template"
)

// Request is one pass over a template, with everything that is known by then.
type Request struct {
	Contents              string
	LeftDelim, RightDelim string
	ErrMissingKey         bool
	Denylist              []string // functions that may not be used; * stands for any text
	Env                   []string // "K=V", what env gives
	Known                 []Known
}

// Known is an answered query.
type Known struct {
	Query  Query
	Answer Answer
}

// Response is what a pass gave. While Missing is not empty, neither Output nor Fault mean anything: what was missing was
// taken for empty.
type Response struct {
	Output  []byte
	Used    []Query // in the order of their first use, Missing included
	Missing []Query
	Fault   string // with line and column where there are any
}

// pass collects what the functions of one pass look up.
type pass struct {
	known map[Query]Answer
	seen  map[Query]bool
	out   Response
}

// Execute runs a template once, in this very process. It knows the clock, and nothing else but the request.
func Execute(req *Request) *Response {
	p := &pass{known: make(map[Query]Answer, len(req.Known)), seen: map[Query]bool{}}
	for _, k := range req.Known {
		p.known[k.Query] = k.Answer
	}
	if req.Contents == "" {
		return &p.out
	}
	t, err := engine.NewTemplate(&engine.NewTemplateInput{
		Contents: req.Contents, LeftDelim: req.LeftDelim, RightDelim: req.RightDelim, ErrMissingKey: req.ErrMissingKey,
		FunctionDenylist: req.Denylist, ExtFuncMap: p.functions(),
	})
	if err != nil {
		p.out.Fault = err.Error()
		return &p.out
	}
	result, err := t.Execute(&engine.ExecuteInput{Brain: engine.NewBrain(), Env: req.Env})
	if err != nil {
		p.out.Fault = positioned(err)
		return &p.out
	}
	p.out.Output = result.Output
	return &p.out
}

// positioned says "line 3:14: ..." where the engine says "template: :3:14: ...": its template has no name.
func positioned(err error) string {
	text := err.Error()
	for _, cut := range []string{"parse: ", "execute: "} {
		text = strings.TrimPrefix(text, cut)
	}
	text = strings.ReplaceAll(text, "template: :", "line ")
	return strings.ReplaceAll(text, `executing "" at`, "at")
}

// ask gives what is known of a query; ok is false while nothing is.
func (p *pass) ask(q Query) (a Answer, ok bool, err error) {
	a, ok = p.known[q]
	if !p.seen[q] {
		p.seen[q] = true
		p.out.Used = append(p.out.Used, q)
		if !ok {
			p.out.Missing = append(p.out.Missing, q)
		}
	}
	if a.Fault != "" {
		err = errors.New(a.Fault)
	}
	return a, ok, err
}

// elsewhere are the functions that ask what a node of this version has no connection to.
func elsewhere() []string {
	return []string{"datacenters", "exportedServices", "key", "keyExists", "keyOrDefault", "ls", "safeLs", "node", "nodes", "partitions",
		"peerings", "secret", "secrets", "service", "connect", "services", "tree", "safeTree", "caRoots", "caLeaf", "pkiCert"}
}

// functions replace the engine's own which look something up.
func (p *pass) functions() texttemplate.FuncMap {
	funcs := texttemplate.FuncMap{
		"file":             p.file,
		"nomadService":     p.service,
		"nomadServices":    p.services,
		"nomadVar":         func(name string) (*dep.NomadVarItems, error) { return nil, p.variable(Query{Kind: Var, Name: name}) },
		"nomadVarExists":   func(name string) (bool, error) { return false, p.variable(Query{Kind: Var, Name: name}) },
		"nomadVarList":     p.variables,
		"nomadVarListSafe": p.variables,
	}
	for _, name := range elsewhere() {
		funcs[name] = func(...any) (any, error) {
			return nil, fmt.Errorf("%s needs Consul or Vault, to which this node has no connection", name)
		}
	}
	return funcs
}

func (p *pass) file(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	a, _, err := p.ask(Query{Kind: File, Name: path})
	return a.Text, err
}

// service takes "name", or a count, a key and "name".
func (p *pass) service(args ...any) ([]*dep.NomadService, error) {
	choose := ""
	switch len(args) {
	case 1:
	case 3:
		count, ok1 := args[0].(int)
		key, ok2 := args[1].(string)
		if !ok1 || !ok2 {
			return nil, errors.New("nomadService: the count must be a whole number and the key a string")
		}
		choose = fmt.Sprintf("%d|%s", count, key)
	default:
		return nil, errors.New("nomadService takes a service, or a count, a key and a service")
	}
	text, ok := args[len(args)-1].(string)
	if !ok {
		return nil, errors.New("nomadService: the service must be a string")
	}
	q, err := serviceQuery(text)
	if err != nil {
		return nil, err
	}
	q.Choose = choose
	a, _, err := p.ask(q)
	return a.Services, err
}

func (p *pass) services(args ...string) ([]*dep.NomadServicesSnippet, error) {
	text := strings.Join(args, "")
	if _, err := dep.NewNomadServicesQuery(text); err != nil {
		return nil, err
	}
	a, _, err := p.ask(Query{Kind: Services, Region: strings.TrimPrefix(text, "@")})
	return a.Names, err
}

func (p *pass) variable(q Query) error {
	_, _, err := p.ask(q)
	return err
}

func (p *pass) variables(prefix ...string) ([]*dep.NomadVarMeta, error) {
	if len(prefix) > 1 {
		return nil, errors.New("nomadVarList takes one prefix or none")
	}
	return nil, p.variable(Query{Kind: VarList, Name: strings.Join(prefix, "")})
}
