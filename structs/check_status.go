package structs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Kinds of checks.
const (
	CheckHTTP   = "http"
	CheckTCP    = "tcp"
	CheckGRPC   = "grpc"
	CheckScript = "script"
)

// Statuses of a check that the node runs. A check is pending until its first result, unless it has an initial_status.
// Only scripts, and checks with failures_before_warning, are ever in warning.
const (
	CheckPending = "pending"
	CheckSuccess = "success"
	CheckWarning = "warning"
	CheckFailure = "failure"
)

// Modes of a check: whether deployments wait for it (healthiness) or not (readiness: on_update is "ignore").
const (
	CheckHealthiness = "healthiness"
	CheckReadiness   = "readiness"
)

// AllocCheckStatus is the newest result of one check of an allocation. Task is empty for a service of the group.
// StatusCode is that of an HTTP answer, Timestamp is in seconds, 0 before the first result.
type AllocCheckStatus struct {
	ID         string
	Check      string
	Group      string
	Mode       string
	Output     string
	Service    string
	Task       string
	Status     string
	StatusCode int
	Timestamp  int64
}

// AllocCheckStatuses are the checks of an allocation by their ids.
type AllocCheckStatuses map[string]AllocCheckStatus

// CheckID names a check of an allocation: of the task, or of its group when task is empty. It depends on all that the
// check's specification says, before anything is interpolated, and on nothing else: one that was changed is another check.
func CheckID(allocID, task string, s *Service, c *ServiceCheck) string {
	spec, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode check: %v", err)) // it has only strings, numbers and maps of them
	}
	h := sha256.New()
	for _, part := range []string{allocID, task, s.Name, s.PortLabel, s.AddressMode, s.Address, string(spec)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Mode says whether deployments wait for the check.
func (c *ServiceCheck) Mode() string {
	if c.OnUpdate == OnUpdateIgnore {
		return CheckReadiness
	}
	return CheckHealthiness
}
