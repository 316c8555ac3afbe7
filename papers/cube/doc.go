// Package cube aggregates OLAP data cubes with the algorithms of J. Meinke, "In-memory
// OLAP aggregation on GPUs using CUDA Dynamic Parallelism" (thesis, Freiburg 2015), on
// the CPU and under the thesis' names: as the reference for a device, and to compare
// them with the way that we would go here (Aggregate).
//
// # The cube
//
// A dimension is an acyclic graph of elements. Base elements have no children; a
// consolidated element refers to others with weights. An element may have several
// parents, and a base element may reach a parent by several paths: its weight there is
// the sum over the paths of the products of the weights on the way.
//
//	All            weight 1    A cell's path is one element for each dimension. A
//	├── Net        weight 1    base cell has base elements only; those that hold a
//	│   ├── Gross  weight 1    value are kept in the fact table, sorted by their
//	│   └── Rebate weight -1   paths, a column of element numbers for each dimension
//	└── Other      weight 2    and one of values.
//
// A query is a set of target areas; an area lists target elements for each dimension
// and stands for all their combinations, the target cells. The value of one is the sum,
// over all filled base cells, of the value times the product of the weights with which
// the cell's elements reach the target's. A target cell is filled where at least one
// filled base cell reaches it, whatever the weights; only those are returned. The
// source area of an area are the base elements that reach any of its target elements;
// cells within it are relevant (the prefilter keeps them). The aggregation map, made
// first by every executor, says for each base element which targets it reaches and with
// which weight.
//
// The aggregate is SUM, as in the thesis.
//
// # Numbers
//
// The thesis computes in doubles: Cube[float64]. Its sums depend on the order of
// additions, which for parallel executors is any. Cube[int64] is fixed point and exact:
// values have Scale decimals, a dimension's weights have Dimension.Scale, and results
// have Cube.ResultScale. Where a result could leave 64 bits, errRange comes before any
// work. Nothing wraps.
//
// # Executors
//
//	Reference            nested loops, the hierarchies walked for each pair of cells
//	SourceBased          section 4.1, StOAP: one thread, a hash map of target paths
//	TargetBased          section 2.3: each target cell looks its source cells up
//	ParallelSourceBased  section 4.2: blocks of cells, one shared hash table updated by
//	                     atomics; prefilter by pages, then cells; preaggregation by
//	                     warps (4.2.1), by strided warps (4.3.4) or in a table of the
//	                     worker's own; several hash slots for each target cell (4.2.2),
//	                     which a compaction adds up
//	DynamicParallelism   section 4.3: parents count, children add; a queue of child
//	                     grids is the closest thing that a CPU has
//	Aggregate            ours: cells are added once each, by class; hierarchies are
//	                     climbed afterwards, one dimension at a time
//
// Why Aggregate wins: all others add each source cell to every target that it reaches,
// which for the thesis' query M2 is 228 additions a cell. Base elements that reach the
// same targets with the same weights are one class. Adding cells up by the classes of
// their elements costs one addition a cell; what remains is a small tensor of class
// sums, multiplied by one (class, target) matrix for each dimension.
package cube
