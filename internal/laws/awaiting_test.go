package laws

import (
	"go/ast"
	"go/token"
	"testing"
)

// awaitingFaults keeps the habit that tests await events, and that who leaves a test out says why. In a bubble of
// testing/synctest time is virtual: a sleep is the way to move it on.
func awaitingFaults(s *source) []string {
	if !s.test {
		return nil
	}
	virtual := s.imports("testing/synctest")
	var faults []string
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch where, name := call(n); {
		case where == "time" && name == "Sleep" && !virtual:
			faults = append(faults, s.at(n)+": await an event instead of sleeping")
		case name == "SkipNow", (name == "Skip" || name == "Skipf") && len(n.(*ast.CallExpr).Args) == 0:
			faults = append(faults, s.at(n)+": say why the test is left out")
		}
		// A statement that only receives from time.After is a sleep by another name.
		if st, ok := n.(*ast.ExprStmt); ok {
			if recv, ok := st.X.(*ast.UnaryExpr); ok && recv.Op == token.ARROW && !virtual {
				if where, name := call(recv.X); where == "time" && (name == "After" || name == "Tick") && !selected(s, st) {
					faults = append(faults, s.at(n)+": await an event instead of sleeping")
				}
			}
		}
		return true
	})
	return faults
}

// selected says whether a statement is what a select waits for.
func selected(s *source, st ast.Stmt) bool {
	found := false
	ast.Inspect(s.File, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && c.Comm == st {
			found = true
		}
		return !found
	})
	return found
}

func TestTestsAwaitEvents(t *testing.T) { check(t, awaitingFaults) }

func TestTestsAwaitEventsFindsFaults(t *testing.T) {
	bad := parse(t, &pkg{ImportPath: module + "/x", Name: "x_test"}, "x_test.go", `package x_test
func f(t *testing.T) {
	time.Sleep(1)
	<-time.After(1)
	select { case <-time.After(1): t.SkipNow(); case <-done: t.Skip("only root may") }
}
`)
	wantFaults(t, 3, awaitingFaults(bad))
}
