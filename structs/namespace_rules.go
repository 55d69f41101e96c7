package structs

const (
	maxNamespaceDescription = 256
	maxNodePoolDescription  = 256
)

// Validate tells all faults of a namespace at once.
func (n *Namespace) Validate() error {
	var errs Errors
	s := scope{errs: &errs}
	if !isName(n.Name, "-", 128) {
		s.addf("invalid name %q: a namespace has 1 to 128 letters, digits and dashes", n.Name)
	}
	if len(n.Description) > maxNamespaceDescription {
		s.addf("description has more than %d characters", maxNamespaceDescription)
	}
	return errs.Err()
}

// Validate tells all faults of a node pool at once.
func (p *NodePool) Validate() error {
	var errs Errors
	s := scope{errs: &errs}
	if !isName(p.Name, "-_", 128) {
		s.addf("invalid name %q: a node pool has 1 to 128 letters, digits, dashes and underscores", p.Name)
	}
	if len(p.Description) > maxNodePoolDescription {
		s.addf("description has more than %d characters", maxNodePoolDescription)
	}
	if c := p.SchedulerConfiguration; c != nil {
		s.oneOf("scheduler algorithm", c.SchedulerAlgorithm, "", SchedulerAlgorithmBinpack, SchedulerAlgorithmSpread)
	}
	return errs.Err()
}

// IsBuiltIn says whether the node pool is one of those that always exist and cannot be changed or deleted.
func (p *NodePool) IsBuiltIn() bool { return p.Name == NodePoolAll || p.Name == NodePoolDefault }

// Algorithms by which the scheduler ranks nodes.
const (
	SchedulerAlgorithmBinpack = "binpack"
	SchedulerAlgorithmSpread  = "spread"
)

// Validate tells what is wrong with a scheduler configuration.
func (c *SchedulerConfiguration) Validate() error {
	var errs Errors
	scope{errs: &errs}.oneOf("scheduler algorithm", c.SchedulerAlgorithm, "", SchedulerAlgorithmBinpack, SchedulerAlgorithmSpread)
	return errs.Err()
}

// ValidateEvalPriority tells whether a request may ask for an evaluation of this priority; 0 asks for the job's.
func ValidateEvalPriority(priority int) error {
	if priority != 0 && (priority < JobMinPriority || priority > JobMaxPriority) {
		return Errorf(CodeInvalid, "eval priority must be from %d to %d (it is %d)", JobMinPriority, JobMaxPriority, priority)
	}
	return nil
}
