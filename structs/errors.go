package structs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Code classes an error once, for HTTP status and exit code alike.
type Code int

// The codes. CodeInvalid is a request that cannot be read (400); CodeValidation an object that was read and is
// refused: the public API answers 500 with all faults in the body.
const (
	CodeInternal Code = iota
	CodeInvalid
	CodeValidation
	CodeNotFound
	CodeConflict
	CodePermission
	CodeMethod
	CodeTooLarge
	CodeNoLeader
	CodeUnavailable
	CodeNotImplemented
	CodeTooMany
)

// HTTPStatus is the status with which an error of this code is answered.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeInvalid:
		return http.StatusBadRequest
	case CodeNotFound:
		return http.StatusNotFound
	case CodePermission:
		return http.StatusForbidden
	case CodeMethod:
		return http.StatusMethodNotAllowed
	case CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case CodeUnavailable:
		return http.StatusServiceUnavailable
	case CodeNotImplemented:
		return http.StatusNotImplemented
	case CodeTooMany:
		return http.StatusTooManyRequests
	default:
		return http.StatusInternalServerError
	}
}

// CodedError is an error with a code. Its text goes to the user as it is.
type CodedError struct {
	Code Code
	Text string
	Err  error
}

func (e *CodedError) Error() string {
	if e.Err != nil && e.Text == "" {
		return e.Err.Error()
	}
	return e.Text
}

// Unwrap gives the wrapped error, if any.
func (e *CodedError) Unwrap() error { return e.Err }

// Errorf makes an error with a code; %w wraps.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &CodedError{Code: code, Text: err.Error(), Err: errors.Unwrap(err)}
}

// ErrorCode finds the code of err: the code it carries, CodeValidation for the faults of an object, else CodeInternal.
func ErrorCode(err error) Code {
	var coded *CodedError
	if errors.As(err, &coded) {
		return coded.Code
	}
	var faults Errors
	if errors.As(err, &faults) {
		return CodeValidation
	}
	return CodeInternal
}

// Sentinels that more than one room tests with errors.Is.
var (
	ErrNoLeader     = &CodedError{Code: CodeNoLeader, Text: "No cluster leader"}
	ErrNotFound     = &CodedError{Code: CodeNotFound, Text: "not found"}
	ErrNodeNotFound = &CodedError{Code: CodeNotFound, Text: "node not found"}
	ErrNoNodeConn   = &CodedError{Code: CodeUnavailable, Text: "No path to node"}
	ErrPermission   = &CodedError{Code: CodePermission, Text: "Permission denied"}
	ErrLagged       = errors.New("subscriber lagged behind the change feed")
	ErrStaleToken   = &CodedError{Code: CodeConflict, Text: "evaluation token does not match"}
)

// Errors collects all faults of an object, so that they can be told at once.
type Errors []error

// Add appends err unless it is nil.
func (e *Errors) Add(err error) {
	if err != nil {
		*e = append(*e, err)
	}
}

// Addf appends a formatted fault.
func (e *Errors) Addf(format string, args ...any) { *e = append(*e, fmt.Errorf(format, args...)) }

// Err gives nil when there is no fault, else one error that lists them all.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Error lists the faults, one a line.
func (e Errors) Error() string {
	noun := "errors"
	if len(e) == 1 {
		noun = "error"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s occurred:", len(e), noun)
	for _, err := range e {
		b.WriteString("\n\t* ")
		b.WriteString(strings.ReplaceAll(err.Error(), "\n", "\n\t"))
	}
	b.WriteString("\n\n")
	return b.String()
}

// Unwrap lets errors.Is and errors.As look at each fault.
func (e Errors) Unwrap() []error { return e }
