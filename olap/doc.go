// Package olap executes a plan.Star over versions of columnar tables, in parallel.
// The innermost loops are internal/simd's where the processor has the instructions.
//
// # Shape
//
// Every table of a query has a pipeline (pipeline.go): scan, steps, sink. The
// pipelines of joined tables run first and end in lookups (lookup.go), keyed by the
// join's unique key; a table that is joined to another joined table is looked up
// while that one's lookup is built, so that the driving table probes only its
// direct neighbours (snowflakes cost nothing more than stars).
//
//	morsel            taken by a worker: a segment, or a part of one where these are few
//	                  (morsels.go); zone maps skip it or drop steps
//	  tile, 1024 rows  selection: positions of rows that are left, ascending; at
//	                   first those that count (colstore.Segment.Live)
//	    ranges         on the encoded column, into a bitmap (compress.FilterRange)
//	    tables         a byte for each code or small value: any condition on text
//	    lookups        a bitmap, an array of 8/16/32-bit entries, or a hash table
//	    conditions     evaluated over the selected rows (eval.go)
//	  sink             groups (group.go) or rows (pipeline.collect)
//
// With AVX2 or AVX-512 a table over a column, and a lookup whose key is a column,
// begin as a set of values too: a filter on the encoded column into the bitmap
// (compress.SetFilter). What is left of the bitmap becomes a selection once few rows are
// left or no such step is, and only for these rows a lookup's entries are read.
//
// Ranges and sets come first, then whatever removes most rows for its cost. A lookup's
// keys give the driving column a range too (d_year = 1993 becomes a range of
// lo_orderdate), for the zone maps and, where there is no set for it and it removes
// enough, as a step.
//
// What a query reads of other stars is computed first (intermediate.go): a relation of plain
// columns, windows among them (window.go), or the first rows of each group alone (cut.go), or what
// a function expands its rows to (projectset.go), which has a pipeline like a table, or a
// constant. A numeric of varying scale is a code there, as text is (decimals.go). A join that asks for existence only (plan.StarJoin.Exists) is a lookup in which one
// of equal keys stands for all; of a large table the scan marks the keys in a bitmap (existence.go).
//
// Where a join's key is not unique (plan.StarJoin.Many) a row meets several partners: what
// is left of a tile is written out as pairs, which are tiles for the sink (fanout.go).
//
// Expressions are compiled to nodes (node.go, compile.go) that yield one int64 a
// row. Bounds from the zone maps go up the tree: where they prove that a result
// fits its type and 64 bits no overflow is checked; else the checked form runs and
// an overflow forwards the query. An expression over one column of text, or over
// one of few values, is written out as a table once (tabulate.go; over many strings in pieces,
// tabulatedict.go; first characters, and what the beginning of a string decides, by ranges of strings that are in order,
// ordereddict.go; a function of few
// results once for a statement, derivedtext.go). What else is computed of
// text, or is text, is evaluated a row at a time (bytree.go). Text gets its codes on the way,
// from a pool that all workers share (intern.go; one goroutine's own strings: stringtable.go): how many strings there are, and in which
// order, is known once the rows have been read.
//
// A group's number is made of digits: a node's distance from its lower bound, or a
// lookup's entry, which for a table that gives group keys only numbers the distinct
// keys. How groups are found is chosen (estimate.go) by the bounds of their number,
// the rows expected and, between large numbers, a sample of the tiles:
//
//	dense        numbers index arrays, each worker's own, added up at the end: up to
//	             denseGroups, or denseMax where rows are many more and groups not few
//	hash         a table of packed keys for each worker (wordtable.go); large ones are
//	             merged side by side, by the upper bits of the hash (merge.go)
//	partitioned  rows are scattered to partitions whose tables stay in the second-level
//	             cache; no group is in two of them (partition.go)
//
// Grouping sets are computed in the same scan: most from the groups of a larger set,
// not from rows (sets.go). What stands over groups is computed a column at a time;
// an ORDER BY with LIMIT first drops the groups that it cannot leave (topk.go); of rows it bounds
// its first key while they are scanned, for zone maps and tiles (topscan.go). Rows are ordered by
// integers that hold the keys, as far as they fit (roworder.go).
//
// Groups of segments are kept for the next execution with the same values (kept.go): while a table is written to,
// that scans only segments that are new or have changed. The unit is one segment: a run of several would cost
// less to merge, but one update of an old row would cost all of it.
//
// # Cores
//
// With Options.Slots no more goroutines compute, over all queries, than there are slots
// (slots.go), and of eight slots one stays free while there are several. An execution begins
// with one, has more while nobody waits, looks after each segment whether others do, and has
// none while it waits: for its other goroutines, for a shared scan, for a device.
//
// Nor do more executions scan than two a slot, of each order of magnitude of estimated work
// (admission.go): the others wait in the order in which they came, with their lookups but
// without groups, those within a slice's work not at all.
//
// # Devices
//
// With Options.Device the groups of a query, or the rows that one for rows asks for, come
// from a device where that can do all of it (device.go); everything above stays as it is:
//
//	pipeline, grouping --lowering--> program.Query --gpu.Runner--> program.Result
//	  nodes                nodes (device_lower.go)                   numbers, program.Values
//	  steps, lookups       steps, lookups (device_steps.go,     --take--> groups, as those
//	  axes, accumulators   device_lookup.go), sink                   of one worker
//	                       (device_sink.go)
//
// The compiled pipeline is the one physical form, and lowering prints it: operators are plan's in
// both, tables, lookups, sets, kinds of steps and of accumulators and their values are types of
// package program. A program stands beside it because it is kept with its kernel: it has the
// shape only, by numbers, without constants, text and errors.
//
// Lookups of large tables are made on the device, too (device_build.go); those of what other stars
// give are made here, and belong to one execution. A device computes
// integers: power sums are sums of squares, sums of doubles those of halves of fixed-point numbers
// in the accumulator's window (floatsum.go), and what a DISTINCT collects is a program of its own, whose groups are
// pairs of a group and a value. Functions of time are arrays by the number of a unit, or of a stretch throughout
// which they differ by the same from their argument. Percentiles of many different values are selected by their leading bits, pass by
// pass (device_percentile.go), and so is the place where a LIMIT cuts rows in an order, of which only those before it are
// found (device_cut.go); of groups in the order of an aggregate, or of how many different values they have, few come back (device_top.go). LIKE over a large dictionary, and lengths of its strings,
// are found by the device, which has the strings (device_strings.go). Functions that are not written out as tables are the processor's, and so is every
// query of which a device says that it is busy, compiling, short of room, or that some row
// is an error: the processor knows which, and whether it counts. Nothing that happens on a
// device is an error here.
//
// # Errors
//
// Postgres evaluates conditions in an order of its own choice, so that a condition
// that may fail is computed here for every row of its table, before anything is
// skipped: no error here implies none there. Arms of CASE and COALESCE, arguments
// behind FILTER, and whatever stands above the filters are computed for the rows
// that Postgres computes them for. Any error ends in a plan.Forward.
//
// # Casts (plan.OpCast)
//
//	integer -> integer         range check
//	integer -> Numeric         scale of the target; precision where it has a typmod
//	Numeric -> Numeric         likewise; digits lost are rounded half away from zero
//	Numeric -> integer         rounded half away from zero, range check
//	floats -> integer          rounded half to even, range check
//	text kinds -> numbers, Bool, Date, Time, Timestamp[TZ]
//	                           as sqltype.FromText reads them; numerics of their own scale
//	integer, Numeric -> Float8 rounded once
//	Float4 -> Float8           exact
//	Date -> Timestamp[TZ]      midnight (UTC)
//	Timestamp[TZ] -> Date      the day (UTC)
//	Timestamp <-> TimestampTZ  in UTC; Bind puts functions in place of others
//	text kinds                 only to types without a length; BPChar loses its blanks
//	Bool -> Int4
//	all but floats -> text     as printed with DateStyle ISO (Query.NeedsISO) and in UTC
//
// # Differences from Postgres that end in a Forward
//
// Intermediate numerics of a fixed scale beyond 64 bits within rows, others beyond 128;
// fields of infinite dates; sums of real; groups with a negative zero; a minimum
// that is both zeros; ILIKE, lower and upper outside of ASCII where the collation's cases are not
// known; the order of many texts that nobody ranked: in collations other than C the server is asked
// for that of some (serverorder.go).
package olap
