// Package stats measures the machine and adds up what tasks use, in the shapes of the public API. Nothing is sampled
// in the background: an idle node costs nothing, and rates are taken between two questions. The client's endpoints
// are its only callers.
package stats
