package api

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// QueryOptions say what a read answers. All fields are optional, and so is the pointer.
type QueryOptions struct {
	Region    string
	Namespace string // "*" for all namespaces
	// AllowStale lets any server answer, not only the leader.
	AllowStale bool
	// Consistent makes the leader check that it still leads before it answers.
	Consistent bool
	// WaitIndex makes a blocking query: the answer comes once it is newer than this index, or after WaitTime.
	WaitIndex uint64
	WaitTime  time.Duration
	Prefix    string
	Filter    string // a go-bexpr expression
	PerPage   int
	NextToken string
	Reverse   bool
	// Params are further query parameters.
	Params map[string]string
}

func (q *QueryOptions) values(wait time.Duration) url.Values {
	values := url.Values{}
	if q == nil {
		return values
	}
	if q.WaitTime != 0 {
		wait = q.WaitTime
	}
	set := func(key, value string, when bool) {
		if when {
			values.Set(key, value)
		}
	}
	set("region", q.Region, q.Region != "")
	set("namespace", q.Namespace, q.Namespace != "")
	set("stale", "true", q.AllowStale)
	set("consistent", "true", q.Consistent)
	set("index", strconv.FormatUint(q.WaitIndex, 10), q.WaitIndex != 0)
	set("wait", wait.String(), q.WaitIndex != 0 && wait != 0)
	set("prefix", q.Prefix, q.Prefix != "")
	set("filter", q.Filter, q.Filter != "")
	set("per_page", strconv.Itoa(q.PerPage), q.PerPage != 0)
	set("next_token", q.NextToken, q.NextToken != "")
	set("reverse", "true", q.Reverse)
	for key, value := range q.Params {
		values.Set(key, value)
	}
	return values
}

// with is a copy of q with one more parameter.
func (q *QueryOptions) with(key, value string) *QueryOptions {
	var next QueryOptions
	if q != nil {
		next = *q
	}
	next.Params = maps.Clone(next.Params)
	if next.Params == nil {
		next.Params = map[string]string{}
	}
	next.Params[key] = value
	return &next
}

// WriteOptions say where a write goes. All fields are optional, and so is the pointer.
type WriteOptions struct {
	Region           string
	Namespace        string
	IdempotencyToken string
	// Params are further query parameters.
	Params map[string]string
}

func (w *WriteOptions) values() url.Values {
	values := url.Values{}
	if w == nil {
		return values
	}
	if w.Region != "" {
		values.Set("region", w.Region)
	}
	if w.Namespace != "" {
		values.Set("namespace", w.Namespace)
	}
	if w.IdempotencyToken != "" {
		values.Set("idempotency_token", w.IdempotencyToken)
	}
	for key, value := range w.Params {
		values.Set(key, value)
	}
	return values
}

// with is a copy of w with more parameters.
func (w *WriteOptions) with(params map[string]string) *WriteOptions {
	var next WriteOptions
	if w != nil {
		next = *w
	}
	next.Params = maps.Clone(next.Params)
	if next.Params == nil {
		next.Params = map[string]string{}
	}
	maps.Copy(next.Params, params)
	return &next
}

// QueryMeta is what comes with the answer to a read.
type QueryMeta struct {
	LastIndex   uint64
	LastContact time.Duration // since the answering server heard from the leader
	KnownLeader bool
	NextToken   string // empty on the last page
	RequestTime time.Duration
}

// WriteMeta is what comes with the answer to a write.
type WriteMeta struct {
	LastIndex   uint64
	RequestTime time.Duration
}

func parseIndex(header http.Header) uint64 {
	index, _ := strconv.ParseUint(header.Get("X-Nomad-Index"), 10, 64)
	return index
}

func readQueryMeta(header http.Header) *QueryMeta {
	contact, _ := strconv.ParseInt(header.Get("X-Nomad-LastContact"), 10, 64)
	return &QueryMeta{
		LastIndex:   parseIndex(header),
		LastContact: time.Duration(contact) * time.Millisecond,
		KnownLeader: header.Get("X-Nomad-KnownLeader") == "true",
		NextToken:   header.Get("X-Nomad-NextToken"),
	}
}
