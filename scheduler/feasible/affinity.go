package feasible

import (
	"math"

	"github.com/nomadlite/nomadlite/structs"
)

// Affinities scores how much the blocks of a job, a group and its tasks like a node.
type Affinities struct {
	rules   []affinityRule
	total   float64
	escaped bool
	known   map[string]float64
}

type affinityRule struct {
	filter *constraintFilter
	weight float64
}

// NewAffinities reads the affinity blocks that apply to a group.
func NewAffinities(job *structs.Job, tg *structs.TaskGroup) *Affinities {
	a := &Affinities{known: map[string]float64{}}
	a.add(job.Affinities)
	a.add(tg.Affinities)
	for _, task := range tg.Tasks {
		a.add(task.Affinities)
	}
	return a
}

func (a *Affinities) add(list []*structs.Affinity) {
	for _, af := range list {
		weight := 50.0
		if af.Weight != nil {
			weight = float64(*af.Weight)
		}
		c := &structs.Constraint{LTarget: af.LTarget, RTarget: af.RTarget, Operand: af.Operand}
		a.rules = append(a.rules, affinityRule{newConstraintFilter(c), weight})
		a.total += math.Abs(weight)
		a.escaped = a.escaped || structs.EscapesClass(af.LTarget) || structs.EscapesClass(af.RTarget)
	}
}

// Score is between -1 and 1: the sum of the weights of the blocks that match, divided by the sum of all weights.
func (a *Affinities) Score(node *structs.Node) float64 {
	if a.total == 0 {
		return 0
	}
	if !a.escaped && node.ComputedClass != "" {
		if score, ok := a.known[node.ComputedClass]; ok {
			return score
		}
	}
	sum := 0.0
	for _, r := range a.rules {
		if r.filter.Check(node) {
			sum += r.weight
		}
	}
	score := sum / a.total
	if !a.escaped && node.ComputedClass != "" {
		a.known[node.ComputedClass] = score
	}
	return score
}
