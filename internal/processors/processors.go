package processors

import "runtime"

var count = runtime.GOMAXPROCS(0)

// Count is the number of cores that this process may use: GOMAXPROCS as it was at the
// start.
func Count() int { return count }

// Loops is the number of event loops: the other half of the cores is for Postgres, or
// for queries.
func Loops() int { return (count + 1) / 2 }

// Spare raises GOMAXPROCS so that, while all cores compute queries, the loops and as many
// goroutines again have a processor of Go's: replication, first copies, gates. A loop keeps its
// own while it waits for a short time.
func Spare() { runtime.GOMAXPROCS(2*count + Loops()) }
