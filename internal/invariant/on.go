//go:build invariants

package invariant

import "fmt"

// Enabled reports whether this build checks invariants.
const Enabled = true

// Check panics with "BUG: " and the message unless ok.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("BUG: " + fmt.Sprintf(format, args...))
	}
}
