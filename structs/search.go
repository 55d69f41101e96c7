package structs

// SearchResponse is documented with the public API.
type SearchResponse struct {
	Matches     map[string][]string
	Truncations map[string]bool
}

// FuzzySearchResponse is documented with the public API.
type FuzzySearchResponse struct {
	Matches     map[string][]FuzzyMatch
	Truncations map[string]bool
}

// FuzzyMatch is documented with the public API.
type FuzzyMatch struct {
	ID    string
	Scope []string `json:",omitempty"`
}
