// Package gpucube aggregates OLAP data cubes on a device: the algorithms of J. Meinke,
// "In-memory OLAP aggregation on GPUs using CUDA Dynamic Parallelism" (thesis, Freiburg
// 2015), by name, and what replaces them here. Answers are those of package papers/cube to
// the last bit, and in its order.
//
// # Numbers
//
// The device adds 64-bit integers. A Cube[int64] is that already. Doubles are taken times
// a power of two that makes values, and each dimension's weights, whole; where a sum could
// leave 53 bits (then the order of additions would matter on the CPU, too) Upload or
// Prepare answer errInexact.
//
// # The cube on the device
//
// Elements are numbered by codes: those base elements of a dimension at which there is a
// cell, in the dimension's order, so that codes are sorted as paths are. A column is packed
// into as many bits as its largest code has, in vectors of 1024 cells: 32 lanes with 32
// positions each.
//
//	vector v        word 0            word 1          ..  word width-1
//	              ┌─────┬─────┬──┐  ┌─────┬─────┐
//	              │lane0│lane1│..│  │lane0│lane1│ ..          cell 1024 v + 32 p + l is
//	              └─────┴─────┴──┘  └─────┴─────┘             position p of lane l: bits
//	               32 bits each, a line of 128 bytes          p*width.. of the lane's words
//
// So 32 consecutive cells are one position of all lanes: a warp reads them with one or two
// lines, and decodes a vector with width whole lines and shifts that are known when it is
// compiled. Values are packed likewise, less the least of them, in one column, or two where
// they have more than 32 bits. Zones keep the least and largest code of each vector.
//
// Target elements that no cell reaches have no filled target cells: the device numbers
// the others, which keeps the order, and the host turns numbers back. An area's map gives, for each code, the targets (numbers that are added up over the
// dimensions) and weights that it reaches. For the thesis' variants dimensions are
// reordered so that the one with most targets is stepped through innermost.
//
// # Variants of the thesis
//
//	source/...       section 4.2: a thread for each source cell, atomics on a hash table
//	  prefilter      irrelevant vectors, then irrelevant cells are left out first (a list)
//	  shared         warps save additions through shared memory (4.2.1)
//	  shuffle        warps save additions by shuffles (5.4.1)
//	  fN             N hash functions: slots for each target cell, added up by a compaction
//	cdp/...          section 4.3: a parent counts targets, child grids add them
//	  fixed          child grids of one block that loops (5.5.1), else as many as fill
//	  stride         warps of children save additions by strides (4.3.4)
//	  sync           explicit synchronisation of parent and children (5.5.2)
//
// CUDA 12 took cudaDeviceSynchronize away from kernels, and with it the launch queue that
// grew as needed: launches that are pending must fit a pool (2048 unless the context's
// limit is raised). Children are launched fire-and-forget, and a parent's step launches
// so few that they fit. With sync the step ends with a tail launch of the next one, which
// waits for its children: the successor of explicit synchronisation. Without it the host
// launches all steps in a row, which is what a pool without limit comes closest to.
// Modules with launches need CUDA 12 and its device runtime (cudadevrt); where the executor
// has none errUnavailable says so.
//
// # Our own
//
//	queue            what the children do, by persistent blocks that take tiles of cells
//	                 from a queue: targets of a tile are shared out among all threads
//	queue/dense      the same into a table in each block's shared memory; 32-bit atomics
//	                 with carries
//	classes/...      each cell is added once, to the sum of its classes
//	  register       one combination of classes: each thread has its own sum
//	  shared         a table in each block's shared memory
//	  global         a table in global memory
//	  hash           a hash table of combinations, which are then handed to their targets
//
// Base elements that reach the same targets with proportional weights are one class; the
// factor goes into the value (package papers/cube keeps factors apart: places are cheap there,
// multiplications too, but shared memory is neither). The scan over the cells is generated
// for a query: it reads columns only where they tell cells apart, with widths, strides and
// tables known when it is compiled. Columns that hardly ever change within a vector are
// taken from its zone. What remains is a tensor of class sums, which is multiplied with
// one (class, target) matrix for each dimension.
//
// A scan adds to 32-bit words in shared memory: values times factors are small enough for
// many vectors, after which the block moves each sum's upper half into a second word.
// Copies of the table for several lanes keep them out of each other's way; lanes that set
// the flag of one place do not, so flags have none.
//
// # Choice
//
// Choose picks a variant from what is known when a query is prepared: cells, targets,
// classes, widths, and a sample of the vectors. Tune runs those that come out closest on a
// part of the cells, and the cube keeps the fastest for queries of the same shape.
//
// # Memory
//
// Columns stay until Close. What queries need besides comes from a pool that the cube keeps,
// so that a query like one before allocates nothing: it is one batch, which begins with its
// maps and ends with its answer.
package gpucube
