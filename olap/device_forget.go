package olap

// ForgetLookups forgets what was remembered of lookups for devices: each query is then
// as if nobody had asked for its joined tables' rows before. For benchmarks.
func ForgetLookups() { knownLookups.Purge() }
