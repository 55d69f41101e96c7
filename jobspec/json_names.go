package jobspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/nomadlite/nomadlite/structs"
)

const (
	// maxUnknownNames bounds what is told about one job.
	maxUnknownNames = 20
	// maxToldName bounds what is told of one name, in bytes.
	maxToldName = 100
)

// nameReader walks a JSON text along the data model and tells the names that no member of it has. They are dropped, as
// they always were; a misspelt one deserves a word.
type nameReader struct {
	dec   *json.Decoder
	begin int // where the job begins in the whole text
	cfg   Config
	diags hcl.Diagnostics
	// members are those of the types met so far, by their names in lower case: JSON names do not mind the case.
	members map[reflect.Type]map[string]reflect.Type
}

// namePath is the way to a value. It becomes text only where something is told: names may be long, and many.
type namePath struct {
	up   *namePath
	name string
	n    int // of an element of a list, counted from 1
}

func (p *namePath) String() string {
	if p == nil {
		return ""
	}
	if p.n > 0 {
		return fmt.Sprintf("%s[%d]", p.up, p.n-1)
	}
	return strings.TrimPrefix(p.up.String()+"."+shortened(p.name), ".")
}

func shortened(name string) string {
	if len(name) > maxToldName {
		return strings.ToValidUTF8(name[:maxToldName], "") + "…"
	}
	return name
}

// unknownNames gives a warning for each name in the JSON job body, which was decoded already, that has no effect.
func unknownNames(cfg Config, body []byte, begin int) hcl.Diagnostics {
	r := &nameReader{dec: json.NewDecoder(bytes.NewReader(body)), begin: begin, cfg: cfg,
		members: map[reflect.Type]map[string]reflect.Type{}}
	_, _ = r.value(reflect.TypeFor[structs.Job](), nil) // what cannot be read was told by the decoder
	return r.diags
}

// value reads one value of type t at path, and says whether it is as good as none.
func (r *nameReader) value(t reflect.Type, path *namePath) (empty bool, err error) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := r.dec.Token()
	if err != nil {
		return false, err
	}
	delim, isDelim := token.(json.Delim)
	if !isDelim {
		return token == nil || token == "" || token == false, nil
	}
	empty = !r.dec.More()
	switch {
	case t == nil:
		return empty, r.skip()
	case delim == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return empty, r.object(t, path)
	case delim == '[' && t.Kind() == reflect.Slice:
		for i := 0; r.dec.More(); i++ {
			if _, err := r.value(t.Elem(), &namePath{up: path, n: i + 1}); err != nil {
				return false, err
			}
		}
		_, err = r.dec.Token()
		return empty, err
	}
	return empty, r.skip() // free form
}

// skip reads to the end of a list or an object whose begin is read already.
func (r *nameReader) skip() error {
	for depth := 1; depth > 0; {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// object reads the members of an object whose brace is read already.
func (r *nameReader) object(t reflect.Type, path *namePath) error {
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return io.ErrUnexpectedEOF
		}
		var inner reflect.Type
		place, end, known := &namePath{up: path, name: name}, r.begin+int(r.dec.InputOffset()), true
		if t.Kind() == reflect.Map {
			inner = t.Elem()
		} else {
			inner, known = r.membersOf(t)[strings.ToLower(name)]
		}
		empty, err := r.value(inner, place)
		if err != nil {
			return err
		}
		if !known && !empty { // older versions wrote null for members which are no more
			r.tell(t, end, name, place)
		}
	}
	_, err := r.dec.Token()
	return err
}

func (r *nameReader) membersOf(t reflect.Type) map[string]reflect.Type {
	members, ok := r.members[t]
	if !ok {
		members = map[string]reflect.Type{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			members[strings.ToLower(name)] = f.Type
		}
		r.members[t] = members
	}
	return members
}

// tell adds a warning about a name that ends at a byte of the text.
func (r *nameReader) tell(t reflect.Type, end int, name string, place *namePath) {
	if len(r.diags) > maxUnknownNames {
		return
	}
	rng := hcl.Range{Filename: r.cfg.Path, Start: position(r.cfg.Body, max(end-len(name)-2, 0)), End: position(r.cfg.Body, end)}
	d := warningAt(rng, "Name without effect", "%s is not a member of %s and is left out.", place, t.Name())
	if len(r.diags) == maxUnknownNames {
		d.Detail = "There are more names without effect, which are left out too."
	}
	r.diags = append(r.diags, d)
}
