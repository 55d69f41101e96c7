package endpoint

import (
	"strings"
	"testing"
)

// TestBodiesThatAreNoOneValue are refused: what is not read must not be dropped silently.
func TestBodiesThatAreNoOneValue(t *testing.T) {
	s := newServer(t)
	for body, says := range map[string]string{
		`{"Eligibility":"eligible"} x`:                           "there is more after the JSON value",
		`{"Eligibility":"eligible"}{"Eligibility":"ineligible"}`: "there is more after the JSON value",
		`[]`:                 "the request is an array: expected an object",
		`{"Eligibility":{}}`: "field Eligibility is an object: expected a string",
		`{"Eligibility":1}`:  "field Eligibility is a number",
		`{"Eligibility":` + strings.Repeat("[", 20000) + `}`:        "no valid JSON",
		`{"Eligibility":"eligible"` + strings.Repeat("\n", 1000000): "it ends in the middle of a value",
	} {
		s.call("PUT", "/v1/node/none/eligibility", body).says(400, says)
	}
	s.call("PUT", "/v1/node/none/eligibility", "{\"Eligibility\":\"eligible\"}\n\n \t").says(404, "node not found")
}
