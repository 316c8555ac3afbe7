package colstore

import "sync/atomic"

// lastID is the last number that NewID returned.
var lastID atomic.Uint64

// NewID returns a number that the process has not used yet, from 1 on. Columns, live
// bitmaps and versions of tables have such numbers (Column.ID, Segment.LiveID, Table.ID):
// where equal numbers are, the content is equal, for as long as the process lives. Caches
// of what was made of them, as those in a device's memory are, look for the number.
func NewID() uint64 { return lastID.Add(1) }
