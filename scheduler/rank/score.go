package rank

import (
	"math"

	"github.com/nomadlite/nomadlite/structs"
)

// Names of the scores in an allocation's metrics, as the public API has them.
const (
	scoreBinPack  = "binpack"
	scoreSpread   = "allocation-spread"
	scoreAnti     = "job-anti-affinity"
	scorePenalty  = "node-reschedule-penalty"
	scoreAffinity = "node-affinity"
)

// Algorithms of the scheduler configuration.
const (
	AlgorithmBinPack = "binpack"
	AlgorithmSpread  = "spread"
)

// packScore tells how well a node is filled by an allocation: freeCPU and freeMemory are the shares (0 to 1) that stay
// free after it. It is the publicly documented best fit, 20 - (10^freeCPU + 10^freeMemory), of 18 at most, divided by
// 18; with the spread algorithm the emptier node scores higher.
func packScore(algorithm string, freeCPU, freeMemory float64) float64 {
	total := math.Pow(10, freeCPU) + math.Pow(10, freeMemory)
	score := 20 - total
	if algorithm == AlgorithmSpread {
		score = total - 2
	}
	return min(max(score, 0), 18) / 18
}

// antiAffinityScore keeps allocations of one group apart: 0 for a node without any, down to -1.
func antiAffinityScore(collisions, desired int) float64 {
	if collisions == 0 {
		return 0
	}
	return max(-1, -float64(collisions+1)/float64(max(desired, 1)))
}

// free gives the share of total that stays free.
func free(total, used int64) float64 {
	if total <= 0 {
		return 0
	}
	return 1 - float64(used)/float64(total)
}

// fnvOffset and fnvPrime are those of 64-bit FNV-1a.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// ties gives each node a number by which it is told apart from equal ones: a hash of the seed and its id. Of four nodes it is
// worked out at once, since each step of one hash waits for the one before.
func ties(out []uint64, seed string, nodes []*structs.Node) {
	from := hash(fnvOffset, seed)
	i := 0
	for ; i+4 <= len(nodes); i += 4 {
		a, b, c, d := nodes[i].ID, nodes[i+1].ID, nodes[i+2].ID, nodes[i+3].ID
		n := min(len(a), len(b), len(c), len(d))
		ha, hb, hc, hd := from, from, from, from
		for j := range n {
			ha, hb = (ha^uint64(a[j]))*fnvPrime, (hb^uint64(b[j]))*fnvPrime
			hc, hd = (hc^uint64(c[j]))*fnvPrime, (hd^uint64(d[j]))*fnvPrime
		}
		out[i], out[i+1] = mix(hash(ha, a[n:])), mix(hash(hb, b[n:]))
		out[i+2], out[i+3] = mix(hash(hc, c[n:])), mix(hash(hd, d[n:]))
	}
	for ; i < len(nodes); i++ {
		out[i] = mix(hash(from, nodes[i].ID))
	}
}

// hash continues an FNV-1a hash with text.
func hash(h uint64, text string) uint64 {
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= fnvPrime
	}
	return h
}
