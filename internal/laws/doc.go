// Package laws holds the tests of what the tree promises about itself: which package may import which, how long a
// piece may grow, that each package and each exported name says what it is, which constructs are banned in product
// code and in tests, and that each library has its line in docs/dependencies.md. It has no code of its own.
//
// A law comes with a test that breaks it, so that a law which finds nothing is known to look. Exceptions stand in
// lists beside the law, each with its reason; an exception that nothing needs any more is a fault too.
package laws
