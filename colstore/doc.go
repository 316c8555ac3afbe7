// Package colstore holds tables as versions of compressed columns, and how far the
// stream has been seen. Copies and queries meet here and nowhere else.
//
// # A version
//
// A Table is one immutable version of a table, in segments of equal length (the
// last of each writer may be shorter). A segment has for each column the encoded
// values, a null bitmap where there are nulls, and a zone map; text columns hold
// codes of a Dict that belongs to the version.
//
//	Loader --Writer--> segments --Finish--> Table --Publish--> Store --Get--> readers
//
// Versions are counted: the store holds one reference, each reader one. A version
// that is replaced, or that the stream says is out of date, disappears with its
// last reader, and its memory is had again.
//
// # Memory
//
// Values, bitmaps and dictionaries lie outside Go's heap, in a memory file
// (memfd_create) that is mapped in chunks of 64 MiB:
//
//	memory file  +----------- chunk -----------+----------- chunk -----------+ ...
//	             | column | column | nulls | ..| strings | entries | ...     |
//	             +--------+--------+-------+---+---------+---------+---------+
//
// Pieces are 64-byte aligned and hold no pointers, so the collector never looks at
// them and another process can map them. Options.MemoryLimit bounds the bytes handed
// out; past it a copy fails with *MemoryError and everything else goes on. Freed
// pages go back to the system. The buffers of a running copy (a segment of 64-bit
// values per column and writer) are on Go's heap and not counted.
//
// # States
//
//	SetState    -> copying, refused, failed, changed
//	Publish     -> ready, from any state
//	MarkChanged -> changed, from ready only
//
// Only a ready table has a version. MarkChanged holds until the next Publish.
package colstore
