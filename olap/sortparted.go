package olap

import (
	"cmp"
	"slices"
)

// Many rows are sorted by several goroutines (sample sort): each sorts a run of them; splitters, which a sample of the
// runs tells, cut each run into parts, and the parts of all runs between two splitters are merged by one goroutine.
//
//	runs    1 4 6 8 | 2 3 7 9 | 0 5 5 8      splitters 3, 6
//	parts   1  4  6 8   2  3  7 9   0  5 5  8
//	merged  1 2 0 -> 0 1 2   4 3 5 5 -> 3 4 5 5   6 8 7 9 8 -> 6 7 8 8 9

// parallelSort is the number of rows from which on several goroutines sort them. Tests make it small.
var parallelSort = 1 << 14

// sampleOfRun is how many rows of each run are looked at for splitters.
const sampleOfRun = 32

// before is the order of rows in which none tie.
func (o *rowOrder) before(a, b uint32) int {
	if c := o.rows(a, b); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// sortParted is sort by several goroutines.
func (o *rowOrder) sortParted(rows []uint32) {
	n := len(rows)
	parts := min(o.x.opt.Workers, n)
	runs := make([][]uint32, parts)
	for r := range runs {
		runs[r] = rows[r*n/parts : (r+1)*n/parts]
	}
	o.x.sideBySide(parts, func(r int) { o.sortRun(runs[r]) })
	var sample []uint32
	for _, run := range runs {
		for i := range sampleOfRun {
			sample = append(sample, run[i*len(run)/sampleOfRun])
		}
	}
	slices.SortFunc(sample, o.before)
	cuts := make([][]int, parts) // by run: where each part ends
	from := make([]int, parts+1) // by part: where it begins among all
	for r, run := range runs {
		for part := 1; part < parts; part++ {
			end, _ := slices.BinarySearchFunc(run, sample[part*len(sample)/parts], o.before)
			cuts[r] = append(cuts[r], end)
		}
		cuts[r] = append(cuts[r], len(run))
		for part, end := range cuts[r] {
			from[part+1] += end
		}
	}
	out := make([]uint32, n)
	o.x.sideBySide(parts, func(part int) {
		pieces := make([][]uint32, parts)
		for r, run := range runs {
			first := 0
			if part > 0 {
				first = cuts[r][part-1]
			}
			pieces[r] = run[first:cuts[r][part]]
		}
		o.merge(pieces, out[from[part]:from[part+1]])
	})
	copy(rows, out)
}

// merge merges sorted pieces into to, two by two.
func (o *rowOrder) merge(pieces [][]uint32, to []uint32) {
	dst, other := make([]uint32, len(to)), to
	for len(pieces) > 1 {
		var merged [][]uint32
		rest := dst
		for i := 0; i < len(pieces); i += 2 {
			a, b := pieces[i], []uint32(nil)
			if i+1 < len(pieces) {
				b = pieces[i+1]
			}
			both := rest[:len(a)+len(b)]
			rest = rest[len(both):]
			for k := range both {
				if len(b) == 0 || len(a) > 0 && o.before(a[0], b[0]) < 0 {
					both[k], a = a[0], a[1:]
				} else {
					both[k], b = b[0], b[1:]
				}
			}
			merged = append(merged, both)
		}
		pieces, dst, other = merged, other, dst
	}
	copy(to, pieces[0])
}
