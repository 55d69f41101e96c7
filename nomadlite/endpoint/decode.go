package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

var errEmptyBody = &structs.CodedError{Code: structs.CodeInvalid, Text: "request body is empty: expected a JSON object"}

// decode reads the body into out, which must be there.
func decode(r *route.Request, out any) error {
	found, err := decodeOptional(r, out)
	if err == nil && !found {
		return errEmptyBody
	}
	return err
}

// decodeOptional reads the body into out if there is one.
func decodeOptional(r *route.Request, out any) (found bool, err error) {
	return decodeBody(r, out, false)
}

// decodeExact is decode with json.Number where a value may have any type.
func decodeExact(r *route.Request, out any) error {
	found, err := decodeBody(r, out, true)
	if err == nil && !found {
		return errEmptyBody
	}
	return err
}

func decodeBody(r *route.Request, out any, exact bool) (found bool, err error) {
	if r.Body == nil {
		return false, nil
	}
	decoder := json.NewDecoder(r.Body)
	if exact {
		decoder.UseNumber()
	}
	err = decoder.Decode(out)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return true, nil
		}
		var tooBig *http.MaxBytesError
		if errors.As(err, &tooBig) {
			return false, err
		}
		return false, structs.Errorf(structs.CodeInvalid, "cannot read the request body: there is more after the JSON value")
	}
	var tooBig *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case errors.As(err, &tooBig):
		return false, err // the mux answers with the limit
	}
	return false, structs.Errorf(structs.CodeInvalid, "cannot read the request body: %s", describe(err))
}

// describe says in a user's words what is wrong with a JSON text.
func describe(err error) string {
	var typeErr *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typeErr):
		where := "the request"
		if typeErr.Field != "" {
			where = "field " + typeErr.Field
		}
		article := "a"
		if typeErr.Value == "array" || typeErr.Value == "object" {
			article = "an"
		}
		return fmt.Sprintf("%s is %s %s: expected %s", where, article, typeErr.Value, jsonKind(typeErr.Type))
	case errors.As(err, &syntax):
		return fmt.Sprintf("no valid JSON at byte %d: %v", syntax.Offset, syntax)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "no valid JSON: it ends in the middle of a value"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func jsonKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "time" && t.Name() == "Duration" {
		return "a number (nanoseconds)"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number" + numberRange(t)
}

// numberRange tells the bounds of small numbers, which a value may miss: a weight, say. Large ones have bounds that nobody meets.
func numberRange(t reflect.Type) string {
	bits := t.Bits()
	switch {
	case bits > 16:
		return ""
	case t.Kind() < reflect.Uint:
		return fmt.Sprintf(" from %d to %d", -1<<(bits-1), 1<<(bits-1)-1)
	}
	return fmt.Sprintf(" from 0 to %d", 1<<bits-1)
}
