package structs

import "time"

// AllocationMetric explains a placement or the lack of one: how many nodes were looked at, and why each was left
// out.
type AllocationMetric struct {
	NodesEvaluated     int
	NodesFiltered      int
	NodesInPool        int
	NodePool           string
	NodesAvailable     map[string]int
	ClassFiltered      map[string]int
	ConstraintFiltered map[string]int
	NodesExhausted     int
	ClassExhausted     map[string]int
	DimensionExhausted map[string]int
	QuotaExhausted     []string
	ResourcesExhausted map[string]*Resources
	Scores             map[string]float64
	AllocationTime     time.Duration
	CoalescedFailures  int
	ScoreMetaData      []*NodeScoreMeta
	// Missing is the least that any node lacks in a dimension of DimensionExhausted: MHz of cpu, MiB of memory and disk, a
	// number of cores. The other dimensions have no amount.
	Missing map[string]int64 `json:",omitempty"`
}

// NodeScoreMeta is how one node was scored, by part of the score.
type NodeScoreMeta struct {
	NodeID    string
	Scores    map[string]float64
	NormScore float64
}
