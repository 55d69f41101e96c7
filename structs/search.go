package structs

// SearchResponse lists ids that begin with a text, by context.
type SearchResponse struct {
	Matches     map[string][]string
	Truncations map[string]bool
}

// FuzzySearchResponse lists names that hold a text, by context.
type FuzzySearchResponse struct {
	Matches     map[string][]FuzzyMatch
	Truncations map[string]bool
}

// FuzzyMatch is one match, with the ids that lead to it.
type FuzzyMatch struct {
	ID    string
	Scope []string `json:",omitempty"`
}
