//go:build !race

package session

// raceEnabled: the race detector makes memory figures meaningless.
const raceEnabled = false
