package structs

import (
	"regexp"
	"strconv"

	"github.com/hashicorp/go-version"
)

// place is where a constraint stands.
type place int

const (
	placeJob place = iota
	placeGroup
	placeTask
	placeDevice
)

func validateConstraints(s scope, list []*Constraint, where place) {
	for i, c := range list {
		c.validate(s.in("constraint %d", i+1), where)
	}
}

func (c *Constraint) validate(s scope, where place) {
	needsTarget := true
	switch c.Operand {
	case ConstraintDistinctHosts, ConstraintDistinctProperty:
		if where != placeJob && where != placeGroup {
			s.addf("%s can stand in a job or a group only", c.Operand)
		}
		needsTarget = c.Operand == ConstraintDistinctProperty
		if n, err := strconv.ParseUint(c.RTarget, 10, 64); needsTarget && c.RTarget != "" && (err != nil || n == 0) {
			s.addf("the value of %s must be a number greater than zero (it is %q)", c.Operand, c.RTarget)
		}
	default:
		validateOperand(s, c.Operand, c.RTarget)
	}
	if needsTarget && c.LTarget == "" {
		s.addf("attribute is missing")
	}
}

// validateOperand checks what constraints and affinities have in common.
func validateOperand(s scope, operand, value string) {
	switch operand {
	case ConstraintRegexp:
		if _, err := regexp.Compile(value); err != nil {
			s.addf("regular expression %q cannot be read: %v", value, err)
		}
	case ConstraintVersion, ConstraintSemver:
		if interpolated(value) {
			return
		}
		if _, err := version.NewConstraint(value); err != nil {
			s.addf("version constraint %q cannot be read: %v", value, err)
		}
	default:
		s.oneOf("operator", operand, "=", "==", "is", "!=", "not", "<", "<=", ">", ">=", ConstraintSetContains,
			ConstraintSetContainsAll, ConstraintSetContainsAny, ConstraintAttributeIsSet, ConstraintAttributeIsNotSet,
			ConstraintRegexp, ConstraintVersion, ConstraintSemver, ConstraintDistinctHosts, ConstraintDistinctProperty)
	}
}

func validateAffinities(s scope, list []*Affinity, jobType string) {
	if len(list) > 0 && (jobType == JobTypeSystem || jobType == JobTypeSysBatch) {
		s.addf("affinity: a job of type %s has no affinities", jobType)
		return
	}
	for i, a := range list {
		s := s.in("affinity %d", i+1)
		if a.LTarget == "" {
			s.addf("attribute is missing")
		}
		switch a.Operand {
		case ConstraintDistinctHosts, ConstraintDistinctProperty:
			s.addf("operator %q is for constraints only", a.Operand)
		default:
			validateOperand(s, a.Operand, a.RTarget)
		}
		if w := Val(a.Weight); w == 0 || w < -100 || w > 100 {
			s.addf("weight must be from -100 to 100 and not zero (it is %d)", w)
		}
	}
}

func validateSpreads(s scope, list []*Spread, jobType string) {
	if len(list) > 0 && (jobType == JobTypeSystem || jobType == JobTypeSysBatch) {
		s.addf("spread: a job of type %s has no spreads", jobType)
		return
	}
	for i, sp := range list {
		s := s.in("spread %d", i+1)
		if sp.Attribute == "" {
			s.addf("attribute is missing")
		}
		if w := Val(sp.Weight); w <= 0 || w > 100 {
			s.addf("weight must be from 1 to 100 (it is %d)", w)
		}
		values, sum := make([]string, 0, len(sp.SpreadTarget)), 0
		for _, target := range sp.SpreadTarget {
			if target == nil {
				continue
			}
			values = append(values, target.Value)
			sum += int(target.Percent)
		}
		s.unique("target", values)
		if sum > 100 {
			s.addf("the percentages of the targets add up to %d", sum)
		}
	}
}
