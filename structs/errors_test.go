package structs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestErrorsCarryTheirCode(t *testing.T) {
	var none, faults Errors
	faults.Add(nil)
	faults.Addf("first %d", 1)
	faults.Add(errors.New("second\nline"))
	if none.Err() != nil || len(faults) != 2 {
		t.Fatalf("got %v and %v", none.Err(), faults)
	}
	text := faults.Err().Error()
	if !strings.HasPrefix(text, "2 errors occurred:\n\t* first 1\n\t* second\n\tline") {
		t.Errorf("got %q", text)
	}
	wrapped := fmt.Errorf("store job: %w", Errorf(CodeConflict, "write row: %w", ErrNotFound))
	for _, c := range []struct {
		err  error
		code Code
		http int
	}{
		{errors.New("x"), CodeInternal, http.StatusInternalServerError},
		{faults.Err(), CodeValidation, http.StatusInternalServerError},
		{fmt.Errorf("register: %w", faults.Err()), CodeValidation, http.StatusInternalServerError},
		{wrapped, CodeConflict, http.StatusInternalServerError},
		{ErrNotFound, CodeNotFound, http.StatusNotFound},
		{ErrPermission, CodePermission, http.StatusForbidden},
		{ErrNoLeader, CodeNoLeader, http.StatusInternalServerError},
		{ErrNoNodeConn, CodeUnavailable, http.StatusServiceUnavailable},
		{Errorf(CodeInvalid, "x"), CodeInvalid, http.StatusBadRequest},
		{Errorf(CodeMethod, "x"), CodeMethod, http.StatusMethodNotAllowed},
		{Errorf(CodeTooLarge, "x"), CodeTooLarge, http.StatusRequestEntityTooLarge},
		{Errorf(CodeNotImplemented, "x"), CodeNotImplemented, http.StatusNotImplemented},
		{Errorf(CodeTooMany, "x"), CodeTooMany, http.StatusTooManyRequests},
	} {
		if got := ErrorCode(c.err); got != c.code || got.HTTPStatus() != c.http {
			t.Errorf("%v: code %d, status %d", c.err, got, got.HTTPStatus())
		}
	}
	if !errors.Is(wrapped, ErrNotFound) || wrapped.Error() != "store job: write row: not found" {
		t.Errorf("got %v", wrapped)
	}
	if (&CodedError{Err: errors.New("inner")}).Error() != "inner" {
		t.Error("an error without a text hides its cause")
	}
}
