package olap

import "pgaccel/colstore"

// Workers take morsels, one after the other (Leis, Boncz, Kemper and Neumann, Morsel-driven parallelism,
// 2014): the segments or, of a table of so few that workers would go without, pieces of segments, of whole
// tiles.

const (
	// morselsPerWorker is how many morsels there are for each worker, at least, so that all end at about
	// the same time.
	morselsPerWorker = 8
	// morselsMost is the most morsels of a segment.
	morselsMost = 16
)

// morsels says how a table's segments are divided. Part k of segment i is morsel i*parts + k.
type morsels struct {
	parts int // of each segment
	rows  int // of each part but the last
}

// wholeSegments are morsels that are not divided.
var wholeSegments = morsels{1, 1 << 30}

// morsels divides a table's segments for the workers.
func (o *Options) morsels(tab *colstore.Table) morsels {
	most := 0
	for _, seg := range tab.Segments {
		most = max(most, seg.Rows)
	}
	tiles := (most + tileRows - 1) / tileRows
	parts := 1
	for o.Workers > 1 && parts < morselsMost && parts < tiles && (parts*len(tab.Segments) < morselsPerWorker*o.Workers || o.Eager) {
		parts *= 2
	}
	return morsels{parts, max((tiles+parts-1)/parts, 1) * tileRows}
}

// count is the number of morsels of a table.
func (m morsels) count(tab *colstore.Table) int { return m.parts * len(tab.Segments) }

// of returns the segment that a morsel is of, and which of its parts it is.
func (m morsels) of(morsel int) (segment, part int) { return morsel / m.parts, morsel % m.parts }

// within returns the rows of a part, from and to, of a segment of so many.
func (m morsels) within(part, rows int) (from, to int) {
	return min(part*m.rows, rows), min((part+1)*m.rows, rows)
}

// whole reports whether the pipeline's segments are scanned whole: what is found out for a segment, from
// indexes or of earlier executions, is for all of it. Who has its first part scans it.
func (p *pipeline) whole() bool { return p.indexable || p.keep != nil }
