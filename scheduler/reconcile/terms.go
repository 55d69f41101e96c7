package reconcile

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// terms say what a group wants when its node cannot be heard.
type terms struct {
	lostAfter time.Duration // how long it is unknown before it is lost; 0 for at once
	fence     time.Duration // after this the node has stopped it by itself; 0 when it does not
	replace   bool          // a replacement runs while it is unknown
	strategy  string        // who stays when it comes back
}

// Strategies of disconnect.reconcile.
const (
	strategyBestScore       = "best_score"
	strategyKeepOriginal    = "keep_original"
	strategyKeepReplacement = "keep_replacement"
	strategyLongestRunning  = "longest_running"
)

// termsOf reads the disconnect block, or the older options that it took the place of.
func termsOf(tg *structs.TaskGroup, node *structs.Node) terms {
	t := terms{replace: true, strategy: strategyBestScore}
	if tg == nil {
		return t
	}
	t.fence = tg.FenceOn(node)
	t.lostAfter = structs.Val(tg.MaxClientDisconnect)
	if structs.Val(tg.PreventRescheduleOnLost) {
		t.replace = false
	}
	if d := tg.Disconnect; d != nil {
		if d.LostAfter != nil {
			t.lostAfter = *d.LostAfter
		}
		if d.Replace != nil {
			t.replace = *d.Replace
		}
		if s := structs.Val(d.Reconcile); s != "" {
			t.strategy = s
		}
	}
	return t
}
