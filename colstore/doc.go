// Package colstore holds tables as compressed columns that change as the stream says,
// and shows each reader the version that its snapshot sees. Copies, the stream and
// queries meet here and nowhere else.
//
// # A version
//
// A Table is one immutable version of a table, in segments of at most 65536 rows. A
// segment has for each column the encoded values, a null bitmap where there are nulls,
// and a zone map; text columns hold codes of a Dict that belongs to the version. Of a
// segment's rows those count that its Live bitmap names.
//
//	Loader --Writer--> segments --Finish--> Table --NewRelation--> Relation --Publish--> Store
//	                                                                  ^                    |
//	                     Insert, Update, Delete, Truncate, Commit ----'     View(snapshot) '--> Table
//
// Versions are counted: whoever has one releases it, and memory that no version and no
// relation needs is had again. The segments of a column that a copy makes lie side by side
// (cluster), megabytes of them: what sends them to a device copies few pieces.
//
// # A relation
//
// New rows go to the end of their part's open segment, in place; a row that is deleted
// stays where it is. An update is both. What a transaction did becomes an entry of the
// log when it commits:
//
//	part      segments, by slot                              log, in order of commits
//	        +---------+---------+---------+--------------+  +------+------+------+ --
//	 100    | encoded | encoded |         | open: rows > |  | xid  | xid  | xid  |
//	        +---------+---------+---------+--------------+  | runs of rows inserted |
//	 101    |         |         | encoded |              |  | addresses deleted     |
//	        +---------+---------+---------+--------------+  +------+------+------+ --
//	           dead      dead      dead       dead <------- folded
//
// A row's address is slot<<16 | row. Open segments hold values as they are, in arrays
// that are doubled when they are full; a mark says up to where readers may look. When a
// segment is full it is encoded behind the writer's back, and addresses stay. Segments
// with more dead rows than others are put together; then addresses change, in the log
// and in the index, while the writer waits.
//
// A part's index finds rows by a hash of their identity: the replica identity's columns
// and, where some of those are not copied, two hidden columns with a hash of them. Under
// REPLICA IDENTITY FULL rows that are all the same form a ring, and the oldest goes
// first.
//
// # What a reader sees
//
// A commit is visible to a snapshot by its xid, not by its place in the log. View takes
// the segments with the deletes that are folded in, clears the rows that visible commits
// deleted, and those that others inserted. It keeps the last versions, and makes the
// next one from the one before: only segments that differ get new bitmaps. Readers hold
// the relation's lock for some hundred nanoseconds; the writer's own lock is none of
// theirs.
//
// Observe tells which snapshots there were. What one of them saw is folded in once it is
// Options.FoldLag old, except what a Pin does not see: deletes become dead bits, and the
// log gets shorter. From then on the relation's horizon is what that snapshot (and the
// pins) saw, and readers who do not see all of it get ErrSnapshot. So do those who do
// not see a truncate, as in Postgres, where they would see no rows.
//
// # Locks
//
//	Relation.writing   rows, the index, the transaction at hand: the stream, and for
//	                   moments who encodes and merges
//	Relation.mu        what readers start from; taken after writing
//
// Slots, columns and addresses are changed under both, so that either is enough to read
// them. Folding, encoding and merging are done by one goroutine of the store, which
// begins with the first commit and ends with Close.
//
// # Memory
//
// Values, bitmaps of nulls, dictionaries and indexes lie outside Go's heap, in a memory
// file (memfd_create) that is mapped in chunks of 64 MiB:
//
//	memory file  +----------- chunk -----------+----------- chunk -----------+ ...
//	             | column | column | nulls | ..| strings | entries | ...     |
//	             +--------+--------+-------+---+---------+---------+---------+
//
// Pieces are 64-byte aligned and hold no pointers, so the collector never looks at
// them and another process can map them. Options.MemoryLimit bounds the bytes handed
// out; past it a copy or a change fails with *MemoryError and everything else goes on.
// Freed pages go back to the system, until Store.Share hands the file to who pins its
// pages: then they stay in the file and are used again. Columns, live bitmaps and
// versions have numbers that name their content (NewID), so that copies of them that a
// device keeps are found and never mistaken. On Go's heap and not counted are the buffers of a
// running copy (a segment of 64-bit values per column and writer; Loader.BufferBytes), the log
// (Store.History; pins count up to Options.HistoryLimit), live and dead bitmaps, a bit a
// row each, and ranks that were renewed.
//
// The writers of a copy add to one dictionary side by side (dictLoader), and its strings
// are ranked on all cores. Where they are many (packedMin) they are sorted by their bytes
// and packed at the end, without places, hashes and what neighbours share:
//
//	dictionary  +----------- packed ------------+------- entries and slots -------+
//	of a copy   | codes 0..first-1, in order    | codes from first on, of the     |
//	            | found by bisection            | stream; found by their hash     |
//	            +-------------------------------+---------------------------------+
//
// A dictionary grows while readers use it: strings never move, each version has its own
// length and keeps the arrays that it began with, and codes past a version's length are
// none of its.
//
// # States
//
//	SetState    -> copying, refused, failed, changed
//	Publish     -> ready, from any state
//	MarkChanged -> changed, from ready only
//
// Only a ready table has a relation. MarkChanged holds until the next Publish.
package colstore
