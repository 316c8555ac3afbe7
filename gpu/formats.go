package gpu

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/program"
)

// format is how devices have a column of a table.
type format struct {
	// width is that of all segments, which kernels then have as a constant; -1 where that
	// would take much more memory than a width for each segment.
	width int8
	keyed bool  // every segment's ID is one: the column can be kept
	full  bool  // every segment has rows
	bytes int64 // of device memory, of all segments
	rows  int   // of the largest segment
	// The largest Min and the smallest Max of the segments.
	largestMin, smallestMax int64
}

// surviving returns the segments that zone maps do not exclude; it does not look at them where
// the bounds of whole columns say that all survive.
func (f *formats) surviving(q *program.Query, columns []format) []uint32 {
	if len(columns) == 0 || !columns[0].full ||
		!program.AllSurvive(q, func(c int) (int64, int64) { return columns[c].largestMin, columns[c].smallestMax }) {
		return program.Surviving(q)
	}
	n := len(q.Segments)
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.all) < n {
		f.all = append(f.all, uint32(len(f.all)))
	}
	return f.all[:n:n]
}

// of returns how a segment of the column lies in device memory.
func (f format) of(c *program.SegmentColumn) program.LaneFormat {
	l := program.LaneFormatOf(c)
	if f.width >= 0 {
		l.Width = uint32(f.width)
	}
	return l
}

// formats remembers the formats of columns by table, and the widths that columns once had: a
// column that grew wider stays so, or each version of a changing table had a kernel and a
// copy of its own.
type formats struct {
	mu     sync.Mutex
	known  *simplelru.LRU[itemKey, format]
	widths *simplelru.LRU[uint64, int8] // by the first segment's column
	all    []uint32                     // 0, 1, 2, ...
}

func newFormats() *formats {
	known, err := simplelru.NewLRU[itemKey, format](1<<16, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	widths, err := simplelru.NewLRU[uint64, int8](1<<16, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &formats{known: known, widths: widths}
}

// imageKey names a column of a table, in all its segments; ok is false where it has no name.
func imageKey(q *program.Query, column int) (key itemKey, ok bool) {
	if q.TableID == 0 || len(q.Segments) == 0 {
		return itemKey{}, false
	}
	key = itemKey{kind: itemImage, id: q.Segments[0].Columns[column].ID, table: q.TableID, n: int32(len(q.Segments))}
	return key, key.id != 0
}

// of returns the formats of a query's columns.
func (f *formats) of(q *program.Query) []format {
	all := make([]format, len(q.Columns))
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range all {
		key, named := imageKey(q, c)
		if named {
			if known, ok := f.known.Get(key); ok {
				all[c] = known
				continue
			}
		}
		sticky := int8(0)
		if named {
			if w, ok := f.widths.Get(key.id); ok && (w <= 32 || q.Columns[c].Wide) {
				sticky = w
			}
		}
		all[c] = formatOf(q, c, sticky)
		if named {
			f.known.Add(key, all[c])
			if all[c].width >= 0 {
				f.widths.Add(key.id, all[c].width)
			}
		}
	}
	return all
}

// formatOf chooses the format of a column; it is at least as wide as sticky says.
func formatOf(q *program.Query, column int, sticky int8) format {
	f := format{width: sticky, keyed: true, full: true, largestMin: math.MinInt64, smallestMax: math.MaxInt64}
	var own, vectors, extra int64 // words of widths of their own, vectors, bytes of everything else
	for i := range q.Segments {
		s := &q.Segments[i]
		c := &s.Columns[column]
		width := program.LaneFormatOf(c).Width
		f.width = max(f.width, int8(width))
		f.keyed = f.keyed && c.ID != 0
		f.full = f.full && s.Rows > 0
		f.rows = max(f.rows, s.Rows)
		f.largestMin, f.smallestMax = max(f.largestMin, c.Min), min(f.smallestMax, c.Max)
		v := int64(s.Rows+program.VectorRows-1) / program.VectorRows
		vectors += v
		own += v * program.VectorRows / 32 * int64(width)
		extra += int64(4*program.LaneWords(0, 0)+8*len(c.Nulls)) + granule
	}
	same := vectors * program.VectorRows / 32 * int64(f.width)
	if same > own+own/2 && same-own > 1<<18 {
		f.width, same = -1, own
	}
	f.bytes = 4*same + extra
	return f
}

// widths are those of Tuning.
func widths(formats []format) []int8 {
	w := make([]int8, len(formats))
	for i, f := range formats {
		w[i] = f.width
	}
	return w
}

// segmentBytes is the device memory of a column of a segment: lanes and, from lanes on, nulls.
func segmentBytes(rows int, c *program.SegmentColumn, l program.LaneFormat) (lanes, all int64) {
	if l.Width > 0 {
		lanes = 4 * int64(program.LaneWords(rows, l.Width))
	}
	return lanes, lanes + 8*int64(bitmapWords(rows, c.Nulls))
}

// bitmapWords is the length of a bitmap of rows, 0 for none.
func bitmapWords(rows int, bitmap []uint64) int {
	if bitmap == nil {
		return 0
	}
	return min((rows+63)/64, len(bitmap))
}
