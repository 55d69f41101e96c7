package rank

import "math"

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

// hash continues an FNV-1a hash with text.
func hash(h uint64, text string) uint64 {
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= fnvPrime
	}
	return h
}
