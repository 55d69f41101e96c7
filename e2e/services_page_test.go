package e2e

import "testing"

// The page about services is true.
func TestThePageAboutServicesIsTrue(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	newShell(t, a).walk("../docs/services.md")
}
