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

// maxUnknownNames bounds what is told about one job.
const maxUnknownNames = 20

// nameReader walks a JSON text along the data model and tells the names that no member of it has. They are dropped, as
// they always were; a misspelt one deserves a word.
type nameReader struct {
	dec   *json.Decoder
	begin int // where body begins in the whole text
	cfg   Config
	diags hcl.Diagnostics
	// members are those of the types met so far, by their names in lower case: JSON names do not mind the case.
	members map[reflect.Type]map[string]reflect.Type
}

// unknownNames gives a warning for each name in the JSON job body, which was decoded already, that has no effect.
func unknownNames(cfg Config, body []byte, begin int) hcl.Diagnostics {
	r := &nameReader{dec: json.NewDecoder(bytes.NewReader(body)), begin: begin, cfg: cfg,
		members: map[reflect.Type]map[string]reflect.Type{}}
	_, _ = r.value(reflect.TypeFor[structs.Job](), "") // what cannot be read was told by the decoder
	return r.diags
}

// value reads one value of type t at path, and says whether it is as good as none.
func (r *nameReader) value(t reflect.Type, path string) (empty bool, err error) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := r.dec.Token()
	if err != nil {
		return false, err
	}
	switch token {
	case nil, "", false:
		return true, nil
	case json.Delim('{'):
		empty = !r.dec.More()
		return empty, r.object(t, path)
	case json.Delim('['):
		empty = !r.dec.More()
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for i := 0; r.dec.More(); i++ {
			if _, err := r.value(elem, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return false, err
			}
		}
		_, err = r.dec.Token()
	}
	return empty, err
}

// object reads the members of an object whose brace is read already. Of a type that is not known all names are good.
func (r *nameReader) object(t reflect.Type, path string) error {
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return io.ErrUnexpectedEOF
		}
		inner, place := reflect.Type(nil), strings.TrimPrefix(path+"."+name, ".")
		end, unknown := r.begin+int(r.dec.InputOffset()), false
		switch {
		case t == nil:
		case t.Kind() == reflect.Map:
			inner = t.Elem()
		case t.Kind() == reflect.Struct:
			inner, ok = r.membersOf(t)[strings.ToLower(name)]
			unknown = !ok
		}
		empty, err := r.value(inner, place)
		if err != nil {
			return err
		}
		if unknown && !empty { // older versions wrote null for members which are no more
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
func (r *nameReader) tell(t reflect.Type, end int, name, place string) {
	if len(r.diags) > maxUnknownNames {
		return
	}
	rng := hcl.Range{Filename: r.cfg.Path, Start: position(r.cfg.Body, max(end-len(name)-2, 0)), End: position(r.cfg.Body, end)}
	d := warningAt(rng, "Name without effect",
		"%s is not a member of %s and is left out.", place, t.Name())
	if len(r.diags) == maxUnknownNames {
		d.Detail = "There are more names without effect, which are left out too."
	}
	r.diags = append(r.diags, d)
}
