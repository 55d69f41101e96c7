package structs

// Constraint limits the nodes on which something may be placed: LTarget Operand RTarget, such as
// ${attr.kernel.name} = linux.
type Constraint struct {
	LTarget string `hcl:"attribute,optional"`
	RTarget string `hcl:"value,optional"`
	Operand string `hcl:"operator,optional"`
}

// Affinity prefers nodes, or with a negative weight avoids them; the weight is from -100 to 100.
type Affinity struct {
	LTarget string `hcl:"attribute,optional"`
	RTarget string `hcl:"value,optional"`
	Operand string `hcl:"operator,optional"`
	Weight  *int8  `hcl:"weight,optional"`
}

// Spread wants allocations spread over the values of an attribute; the weight is from 1 to 100.
type Spread struct {
	Attribute    string          `hcl:"attribute,optional"`
	Weight       *int8           `hcl:"weight,optional"`
	SpreadTarget []*SpreadTarget `hcl:"target,block"`
}

// SpreadTarget is the share that one value of a spread's attribute should get.
type SpreadTarget struct {
	Value   string `hcl:",label"`
	Percent uint8  `hcl:"percent,optional"`
}
