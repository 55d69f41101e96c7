package rank

import (
	"fmt"

	"github.com/nomadlite/nomadlite/structs"
)

// ask is what one allocation of a group takes from a node.
type ask struct {
	tg       *structs.TaskGroup
	cpu      int64 // MHz, without the tasks that reserve cores
	memory   int64
	disk     int64
	cores    int
	static   []portAsk
	dynamic  []portAsk
	oversold bool // memory_max is honoured
}

// portAsk is one port that the group or one of its tasks asks for.
type portAsk struct {
	task      string // empty for a port of the group's network
	network   int    // index of the group's or the task's network
	port      structs.Port
	collision string // the dimension that is exhausted when a static port is taken
}

func newAsk(tg *structs.TaskGroup, oversold bool) *ask {
	a := &ask{tg: tg, oversold: oversold}
	if tg.EphemeralDisk != nil {
		a.disk = int64(structs.Val(tg.EphemeralDisk.SizeMB))
	}
	a.addNetworks("", tg.Networks)
	for _, task := range tg.Tasks {
		r := task.Resources
		if r == nil {
			continue
		}
		if cores := structs.Val(r.Cores); cores > 0 {
			a.cores += cores
		} else {
			a.cpu += int64(structs.Val(r.CPU))
		}
		a.memory += int64(structs.Val(r.MemoryMB))
		a.addNetworks(task.Name, r.Networks)
	}
	return a
}

func (a *ask) addNetworks(task string, networks []*structs.NetworkResource) {
	for i, n := range networks {
		for _, p := range n.ReservedPorts {
			a.static = append(a.static, portAsk{
				task: task, network: i, port: p,
				collision: fmt.Sprintf("network: reserved port collision %s=%d", p.Label, p.Value),
			})
		}
		for _, p := range n.DynamicPorts {
			a.dynamic = append(a.dynamic, portAsk{task: task, network: i, port: p})
		}
	}
}
