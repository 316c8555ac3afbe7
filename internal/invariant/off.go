//go:build !invariants

package invariant

// Enabled reports whether this build checks invariants.
const Enabled = false

// Check panics with "BUG: " and the message unless ok, in builds with the tag
// invariants; here it does nothing.
func Check(bool, string, ...any) {}
