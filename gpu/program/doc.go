// Package program says what a device computes for a query: which columns it decodes,
// which rows pass, what becomes of them. A Program is data; Generate makes one CUDA C++
// kernel of it (package kernels has the building blocks), and Reference computes the same
// on the processor, row by row: slow, obvious, and what kernels are tested against.
//
// A Program has the shape only. Everything that differs between two executions of a
// statement (constants, bounds, pointers, numbers of groups) is in Query and becomes the
// kernel's parameter, so that a shape is compiled once. A kernel is kept with its Program,
// thousands of them: nothing of a query's data may hang on it. Operators are package plan's.
//
// # Columns on a device
//
// A column of a segment lies in device memory as vectors of 1024 values in 32 lanes, as
// FastLanes has them (Afroozeh, Boncz; VLDB 2023): value i is in lane i%32 at position i/32,
// and a lane packs its values lowest bits first. One reference and one width serve the whole
// segment (value - reference in width bits, 0 to 64), so that vector v begins at word
// v*32*width:
//
//	         lane 0   lane 1       lane 31
//	       +--------+--------+-- --+--------+
//	word 0 | values 0, 32 .. | ... |        |   a warp reads 32 consecutive rows
//	word 1 |        |        | ... |        |   with one or two loads of 128 bytes,
//	...    |        |        |     |        |   and skips them by reading nothing
//	w-1    |        |        | ... |        |
//	       +--------+--------+-- --+--------+
//
// Widths above 32 are two packings in each vector: the low 32 bits (32*32 words), then the
// w-32 bits above. After the last vector 128 words more can be read. What the store has
// in another format is transcoded on the device once, when it comes in (package kernels,
// transcode.cuh). Nulls and live rows are bitmaps as the store has them.
//
// # Running a query
//
// What lies in device memory is the caller's: columns and their descriptors, and the data
// beside them (sets, tables, lookups), which are packed by this package and found again by
// their IDs.
//
//	t := program.TuningFor(q, &info, widths...)       // of columns, where all segments have one
//	g, err := program.Generate(q.Program, t)          // once for each program and t
//	m, err := executor.Compile(ctx, dev, g.Source)    // likewise
//
//	for each segment: heads = program.AppendSegmentHead(heads, live, s.Rows)
//	for each column of it: f := program.LaneFormatOf(&c), or wider
//		jobs = program.AppendTranscodeJob(jobs, encoded, words, s.Rows, f) // see Transcode
//		columns[i] = program.AppendColumnSegment(columns[i], words, nulls, f)
//
//	list := program.Surviving(q)
//	b := &program.Buffers{..., Scratch: allocate(g.ScratchBytes(q, len(list)))}
//	c := g.Prepare(nil, q, b)
//	c = g.ScanSegments(c, q, m, b, list, info.SMs) // again for further parts of a table
//	c = g.Finish(c, q, m, b, info.SMs)
//	reply, err := executor.Run(ctx, dev, &device.Batch{Commands: c})
//	first := reply.Data[0]
//	if more, ok := g.Rest(q, b, first); ok { // rare: a result much larger than those before
//		run it; rest = its data
//	}
//	result, err := g.Parse(q, first, rest)
//
// # Kernels
//
// A generated kernel is a persistent grid whose warps take vectors. A lane keeps its 32 rows
// of the vector as bits of a word, bit p being row p*32 + lane, and each of the first steps
// clears bits of it: it reads all of the lane's words of one column, w loads of 128 bytes,
// and compares offsets with an interval, or looks them up in a bitmap in shared memory, in
// straight-line code without a branch. Columns are read while a row of the vector is left.
// Scans of few bits a row wait for integer instructions rather than for memory: an interval
// takes two or three for each value where widths are constants (kernels/lanes.cuh:
// words_inside), and a lookup whose keys' interval says as much as it does, as that of a
// year's days, is compared with the interval first, and asked of rows that were gathered.
//
//	vector --> ranges, bitmaps: 32 rows of each lane at once (scan.go: dense)
//	             | rows that are left, as numbers in the warp's queue (shared memory)
//	             v
//	           full warps of gathered rows: other steps, entries, expressions (gathered)
//	             |
//	             v
//	           groups or a bitmap (sink.go)
//
// Once few rows are left they are gathered, since a device that has decoded a column for one
// of 32 lanes has done the work of 32 (tuning.go says when). Groups are added to in
// registers, in shared memory with 32-bit atomics whose carries go on by hand (64-bit ones
// are loops there on Hopper), or in global memory. Nothing that differs between executions
// is in the source: constants, bounds and pointers are members of the kernel's parameter.
//
// Numbers of groups that 64 bits do not hold have a prefix (Sink.Prefix). A hash table of prefixes
// comes first; the place of one there and the number of the other digits are what the table of groups
// is asked for. No word of either is ever locked:
//
//	prefix --> keys of prefixes: slot --> number * slots + slot --> keys, table
//
// Sink.Distinct asks for groups alone. To count the values of a DISTINCT, whose groups are pairs, is one more
// kernel between scan and result (Sink.Counted), so that no pair leaves the device.
//
// The bits of a set, or the values of a table, over the codes of a dictionary may be found on the device (strings.go).
//
// Sink.Top asks for the first groups by an accumulator, or of numbers that are counted by their counts. Two more kernels find the value that the last
// of these has, but for its lowest bits, so that few others leave the device (top.go).
//
// Of SinkBitmap the words that are not 0 leave the device, with their numbers, where they are few, else all (bitmap.go).
//
// A Lookup that is Many finds several partners (fan.go). Gathered rows are written out as pairs of a row
// and a partner, numbered through a warp, 32 at a time: other steps and the sink run on these.
//
// Bitmap indexes come before all of that: Narrow decodes what Query.Indexed names, and a scan that
// is given the heads it leaves sees fewer live rows.
//
// A SinkBuild is another kernel (build.go): a warp has 128 rows and is done, since tables that
// lookups are built of are small, and what counts is how often it waits for memory. The bits
// of 32 consecutive keys are set at once. Where Buffers.Faults has the query's Head, a build
// is one launch, and Clear clears what all builds and the query have in one more.
package program
