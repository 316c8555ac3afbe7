// Package gpu has queries computed by devices: it keeps columns in their memory, compiles
// kernels, shares the devices among queries, and says when the processor is to answer instead.
// Package device has the words in which it asks a process that has the devices; package
// program makes kernels of queries.
//
// Manager is all of it. Attach gives it an Executor, Detach takes it away, at any time: in
// between a query is a job (job.go), or one for each device.
//
// # A query
//
//	compile    the kernels of the query and of the lookups that it builds, by the shape of
//	           the program; what is not compiled begins to be, and the processor answers,
//	           unless an earlier process has left it on disk: that is loaded in a moment
//	queue      a stream of the device, callers taking turns
//	acquire    under the device's lock: find or make room for all that is read and
//	           written; list what must be copied
//	execute    one batch: copies, transcoding, builds, scan, result. Or several, where
//	           much is to come
//	release    unpin; what was brought is there for others from here on, or if the batch
//	           failed, forgotten
//
// A query whose columns are there costs the host about 50 microseconds, and as many
// look-ups as it has columns and lookups: not segments.
//
// With Options.Kernels the sources of the kernels that were used last are in a file, and those of the process before are
// compiled for a device when it comes, one after the other, while no query waits for a compiler:
//
//	"pgaccel kernels 1\n"
//	32 bytes  SHA-256 of what follows
//	JSON      {"headers": a hash of what kernels include, "kernels": [{"name": "scan_..", "code": ".."}, ..]}
//
// At most 256, the one used last first. A source is of a query's shape: no constant and no value of a row is in it. Where
// the headers are others the list is dropped: another version of package program makes other sources.
//
// Nor does a device's memory outlive its process: who has the tables says with RunOptions.Prewarm what is to be there before
// queries ask (prewarm.go).
//
// # What is kept
//
// Items (cache.go) are columns of segments (device lanes, then nulls), bitmaps of live rows,
// sets, tables and lookups, made by the host or built on the device; each has the ID of its
// content, and is immutable. Images (image.go) are what kernels read to find columns: an
// array of descriptors for each column of a table's version, by segment. An image keeps the
// columns that it describes; the next version's takes over what is the same, and copies
// its descriptors within the device.
//
//	query --> image of a column --> column of segment 0, 1, 2 ... --> device memory
//	      --> image of segments --> live rows of segments that have some
//	      --> lookups, sets, tables
//
// References count: of running queries, which pin what kernels read, and of images. What has
// none waits in LRU lists to be evicted when memory is needed (arena.go): single items,
// images, and what was in an image that was evicted, the oldest of the three first.
//
// All segments of a column have one width where that costs little more memory, so that the
// width is a constant in the kernel (formats.go).
//
// # Bitmap indexes
//
// Query.Indexed names the indexes of columns (package bitmapidx), which are kept as columns are, and the
// conditions that are asked of them:
//
//	bins, and their atoms --> narrow: a block for each segment --> live rows that may pass --> scan
//	  kept in the LRU           finds the bins of each condition      8 KiB of a segment       reads them
//	  beside columns            OR of bins in shared memory           of the query's own       as live rows
//	                            AND of clauses, NOT, live rows
//
// So the kernel of the scan is the same with and without. Rows of bins at a range's edges are among
// those that are left: the step that asks for the range stays, and compares the packed column where a
// vector has rows left. In a segment where there are no such rows (SegmentHead.decided) that column is not
// read. A segment without an index keeps its live rows as they are. Who makes a query decides whether indexes
// pay (olap/device_index.go). What streams through is scanned without.
//
// # Strings
//
// The strings of a dictionary, as package colstore packs them, are kept whole beside columns. What a query asks of them, which match
// (program.Match) or how long they are (program.Lengths), is a launch before its scan, whose result lasts as long as the query (strings.go,
// kernels/strings.cuh): a thread has a block of 16 strings and goes over their codes by an automaton, a byte at a time, without
// decoding them.
//
// # What does not fit
//
// A query whose columns do not fit three quarters of the budget, or that finds the memory
// full of what others have pinned, has descriptors of its own. The columns that most scans read are
// kept (stock.go), as many as there is room for, and the same for many scans: caching the last ones
// would have queries in turns take each other's. The others stream through three buffers
// (buffers.go, writer.go), which one scan at a time has: chunk k+1 is copied, compressed, while chunk
// k is transcoded and computed, with a share of what is kept, and the groups stay on the device all
// the while; columns that are to be kept come with them. It is one batch, whose copies have streams
// of their own, besides that of its kernels: events say when a chunk has come and when its buffer is
// free, so that the bus waits for nobody on the host. A chunk's columns are copied in the order of
// the file, where a column's segments lie side by side: in few large pieces. Copies of many small
// ones are kernels themselves, which others leave multiprocessors to. If even that finds no room, it
// waits to be alone on the device, and then fails with FaultMemory. It waits for nobody's columns:
// what another job is bringing it has streamed.
//
// What the host decided stays: a query that brought nothing leaves its descriptors and orders
// behind (layout.go) for the next one with the same columns, which then costs the host as little as
// one whose columns fit. Where another has them, hints (hint.go) spare it looking for what was not
// there.
//
// Queries that need what another one is about to bring wait for it, having brought what is
// theirs to bring: so they cannot wait for each other. Lookups that another query is building are
// built again.
//
// # Faults
//
// A fault ends its query, and is counted by kind. What the batch brought is forgotten. Two
// faults in a row keep a kernel off devices for a second, and each further one twice as long; a
// source that does not compile is not tried again. After FaultLost there is no device
// until the next Attach; the kernels that were used are compiled for it before anyone asks.
//
// # Several devices
//
// Segments go to devices by Segment.ID, or by position, so that each device keeps its own.
// Each computes its part, lookups included, and the results become one (merge.go). What they would count
// of groups that others may have, too (program.Sink.Counted), the host counts.
//
// # Several queries
//
// Queries run beside each other on streams, and share images and lookups. With Options.Share
// one that is equal to a query that waits or runs joins it (share.go): same program, constants,
// table's version and names of lookups.
//
// Queries that differ have a scan each of what is there. What streams through they scan together
// (convoy.go): who comes while a query streams a version of a table waits, holding nothing, and all
// who have come by its end ride the next lap (lap.go), of the columns of all of them (union.go),
// copied and transcoded once. Each has its own list of segments, its constants, its scratch and its
// launches; who would be worse off than with its share of the bus is left for another lap. A lap
// waits a little for those who rode in the last one. Nobody knows whose fault it is that a lap fails:
// each runs alone again. A query that is given up is computed no further, but leaves when the lap
// ends, since its memory is in use. With nobody else there a query runs as it does without
// Options.Share. A query that has lookups to build does not ride.
//
// A table of groups by hash that gets full is made larger and the query computed again, up to
// an eighth of the memory (grow.go); how large it became is remembered for the next.
package gpu
