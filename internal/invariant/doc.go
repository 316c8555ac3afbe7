// Package invariant holds checks that cost nothing in ordinary builds and stop
// the program in builds with the tag invariants (go test -tags invariants).
//
// A check whose argument is dear to compute stands behind Enabled, which is a
// constant, so the compiler drops it:
//
//	if invariant.Enabled {
//		invariant.Check(slices.IsSorted(sel), "selection not ascending: %v", sel)
//	}
package invariant
