package command

import (
	"fmt"

	"github.com/hashicorp/go-bexpr"
)

// recordFilter makes the test of a filter expression. Records without the fields it asks for do not pass; everything
// passes an empty one.
func recordFilter(text string) (func(record any) bool, error) {
	if text == "" {
		return func(any) bool { return true }, nil
	}
	match, err := bexpr.CreateEvaluator(text)
	if err != nil {
		return nil, fmt.Errorf("-filter: %w", err)
	}
	return func(record any) bool {
		ok, err := match.Evaluate(record)
		return err == nil && ok
	}, nil
}
