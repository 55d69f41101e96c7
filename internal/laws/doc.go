// Package laws holds the tests of what the tree promises about itself: which package may import which, that each
// package says what it is, and which constructs are banned. It has no code of its own.
package laws
