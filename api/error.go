package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Error is an answer of the agent other than success.
type Error struct {
	StatusCode int
	Text       string // the body, without surrounding blanks
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("unexpected response code: %d (%s)", e.StatusCode, http.StatusText(e.StatusCode))
	}
	return fmt.Sprintf("unexpected response code: %d (%s)", e.StatusCode, e.Text)
}

func readError(resp *http.Response) error {
	// The status is the answer: of its text, what could be read is told.
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return &Error{StatusCode: resp.StatusCode, Text: strings.TrimSpace(string(text))}
}

// StatusCode gives the HTTP status which err stands for, 0 when it is no answer of the agent.
func StatusCode(err error) int {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

// IsNotFound says whether the agent knows no such object.
func IsNotFound(err error) bool { return StatusCode(err) == http.StatusNotFound }

// Text is the agent's own words when err is an answer of it, else err's text.
func Text(err error) string {
	var answer *Error
	if errors.As(err, &answer) && answer.Text != "" {
		return answer.Text
	}
	return err.Error()
}
