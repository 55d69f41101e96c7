package taskrunner

// Process gives the driver's id of the process which the task may have now.
func (r *Runner) Process() (taskID string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.local.Phase
	return r.taskID(), p == Starting || p.hasProcess() && r.local.Exit == nil
}
