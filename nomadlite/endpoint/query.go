package endpoint

import (
	"net/url"
	"strconv"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// How long a blocking query waits when it doesn't say, and at most.
const (
	defaultWait = 5 * time.Minute
	maxWait     = 10 * time.Minute
)

// query is the parameters which reads and writes have in common.
type query struct {
	values    url.Values
	namespace string // "default" when not given, may be "*"
	pretty    bool

	consistent bool
	minIndex   uint64 // 0: answer at once
	wait       time.Duration

	prefix    string
	filter    string
	perPage   int // 0: all
	nextToken string
	reverse   bool
}

// parseQuery reads the common parameters. Values that cannot be read are refused, not ignored.
func (b *Backend) parseQuery(r *route.Request) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, structs.Errorf(structs.CodeInvalid, "cannot read the query parameters: %w", err)
	}
	q := &query{
		values:    values,
		namespace: values.Get("namespace"),
		prefix:    values.Get("prefix"),
		filter:    values.Get("filter"),
		nextToken: values.Get("next_token"),
		wait:      defaultWait,
	}
	if q.namespace == "" {
		q.namespace = structs.DefaultNamespace
	}
	if err := b.checkRegion(values.Get("region")); err != nil {
		return nil, err
	}
	var errs [6]error
	q.pretty, errs[0] = q.flag("pretty")
	q.consistent, errs[1] = q.flag("consistent")
	q.reverse, errs[2] = q.flag("reverse")
	q.minIndex, errs[3] = q.unsigned("index")
	q.perPage, errs[4] = q.count("per_page")
	if text := values.Get("wait"); text != "" {
		q.wait, errs[5] = parseWait(text)
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return q, nil
}

// checkRegion refuses a region other than this one: there is no path to another yet.
func (b *Backend) checkRegion(region string) error {
	if region != "" && region != b.Region {
		return structs.Errorf(structs.CodeNoLeader, "No path to region")
	}
	return nil
}

func parseWait(text string) (time.Duration, error) {
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter wait: expected a duration such as 10s",
			text)
	}
	if wait == 0 {
		return defaultWait, nil
	}
	return min(wait, maxWait), nil
}

// flag reads a boolean parameter; one without a value is true.
func (q *query) flag(name string) (bool, error) {
	list, ok := q.values[name]
	if !ok {
		return false, nil
	}
	if list[0] == "" {
		return true, nil
	}
	value, err := strconv.ParseBool(list[0])
	if err != nil {
		return false, structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter %s: expected true or false",
			list[0], name)
	}
	return value, nil
}

// unsigned reads a number, 0 when it is not given.
func (q *query) unsigned(name string) (uint64, error) {
	text := q.values.Get(name)
	if text == "" {
		return 0, nil
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter %s: expected a number, 0 or more",
			text, name)
	}
	return value, nil
}

// count reads a number that fits 32 bits, 0 when it is not given.
func (q *query) count(name string) (int, error) {
	text := q.values.Get(name)
	if text == "" {
		return 0, nil
	}
	value, err := strconv.ParseInt(text, 10, 32)
	if err != nil || value < 0 {
		return 0, structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter %s: expected a number, 0 or more",
			text, name)
	}
	return int(value), nil
}

// duration reads an optional duration that is not negative. One that is given without a value is refused: whoever sends it
// means some limit.
func (q *query) duration(name string) (*time.Duration, error) {
	if !q.values.Has(name) {
		return nil, nil
	}
	text := q.values.Get(name)
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 {
		return nil, structs.Errorf(structs.CodeInvalid, "invalid value %q of parameter %s: expected a duration such as 5s",
			text, name)
	}
	return &value, nil
}

// one gives the namespace of a read that is about one object, which "*" cannot name.
func (q *query) one() (string, error) {
	if q.namespace == structs.AllNamespaces {
		return "", structs.Errorf(structs.CodeInvalid, "namespace %q cannot be used here: name one namespace",
			q.namespace)
	}
	return q.namespace, nil
}
