package structs

import "encoding/json"

// ParseView is the job as a jobspec says it, in the form {"Job": {...}}: what the user left out is null, and what the
// servers own is null too.
func ParseView(j *Job) ([]byte, error) {
	return json.Marshal(map[string]any{"Job": j})
}
