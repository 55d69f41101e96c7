package structs

import "time"

// TaskState is what the node last said about a task.
type TaskState struct {
	State       string
	Failed      bool
	Restarts    uint64
	LastRestart time.Time
	StartedAt   time.Time
	FinishedAt  time.Time
	Events      []*TaskEvent
	// Packed is Events as a server keeps them (Pack), which has nil for Events then: read them with AllEvents. Never changed in place.
	Packed []byte `json:"-" cbor:"Packed,omitempty" bexpr:"-"`
}

// TaskEvent is something that happened to a task; Time is in Unix nanoseconds. DisplayMessage and Details are what
// people are shown, the other fields older forms of the same.
type TaskEvent struct {
	Type             string
	Time             int64
	DisplayMessage   string
	Details          map[string]string
	Message          string
	FailsTask        bool
	RestartReason    string
	SetupError       string
	DriverError      string
	DriverMessage    string
	ExitCode         int
	Signal           int
	KillReason       string
	KillTimeout      time.Duration
	KillError        string
	StartDelay       int64
	DownloadError    string
	ValidationError  string
	DiskLimit        int64
	DiskSize         int64
	FailedSibling    string
	VaultError       string
	TaskSignalReason string
	TaskSignal       string
	GenericSource    string
}
