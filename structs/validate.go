package structs

// Validate tells all faults of a canonical job at once, as Errors.
func (j *Job) Validate() error {
	var errs Errors
	return errs.Err()
}

// Warnings tells what is accepted, but probably not meant.
func (j *Job) Warnings() []string {
	return nil
}
