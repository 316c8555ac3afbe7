package olap

// interlaced is the intermediate data structure of "A wait-free output data structure
// for GPU-based streaming query processing" (Silvestri, Lettich, Orlando, Jensen),
// section 3.1: the truth of every query's condition for every element of a domain, a
// bit each. Here the domain are the rows of a segment, and a batch are the queries that
// scan it together. A line holds the cells of all queries for the same 64 rows:
//
//	          query 0   query 1   ...   query k-1
//	        +---------+---------+-----+-----------+
//	line 0  | rows    | rows    |     | rows      |
//	        | 0..63   | 0..63   | ... | 0..63     |
//	        +---------+---------+-----+-----------+
//	line 1  | 64..127 | 64..127 | ... | 64..127   |
//	        +---------+---------+-----+-----------+
//
// Each cell has one writer and a place of its own, so that none waits for another and
// nothing is appended. Filtering writes lines, linearise puts the cells of one query
// side by side, and a worker reads them as the rows that count (sections 3.2 and 3.3).
type interlaced struct {
	queries int
	cells   []uint64 // lines*queries
}

// reset makes room for the bits of n rows and so many queries, all 0.
func (b *interlaced) reset(n, queries int) {
	size := (n + 63) / 64 * queries
	b.queries = queries
	if cap(b.cells) < size {
		b.cells = make([]uint64, size)
		return
	}
	b.cells = b.cells[:size]
	clear(b.cells)
}

// put writes the cells of one query from a line on.
func (b *interlaced) put(query, line int, cells []uint64) {
	at := line*b.queries + query
	for _, c := range cells {
		b.cells[at] = c
		at += b.queries
	}
}

// linearise writes the cells of one query to dst, one for each line from the given one on.
func (b *interlaced) linearise(query, line int, dst []uint64) {
	at := line*b.queries + query
	for i := range dst {
		dst[i] = b.cells[at]
		at += b.queries
	}
}
