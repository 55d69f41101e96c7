// Package drivertest is the conformance suite of the driver contract: each driver's tests describe in a Suite how the
// driver is made and which config does what, and call Run. What a driver cannot do is left nil there, and is not
// tested.
package drivertest
