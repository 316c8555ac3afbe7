package program

import "math/bits"

// place is where an accumulator lies in a group's words.
type place struct {
	same   bool // it is the rows of the group
	global int  // its first word of 64 bits; word 0 has the rows
	shared int  // its first array: of 64 bits for keys of 64, else of 32
	key32  bool // a minimum or maximum that is kept in 32 bits in shared memory
}

// places lays out the accumulators.
type places struct {
	accs    []place
	global  int // words of 64 bits of a group in a table
	keys    int // arrays of 64 bits in shared memory; they come first
	shared  int // arrays of 32 bits after them: array 0 has the rows
	results int // words of a group in the result, its number, its prefix and rows included
}

func (p *Program) places() places {
	l := places{global: 1, shared: 1, results: 2}
	if p.Sink.Prefix > 0 && !p.Sink.Counted {
		l.results++
	}
	for _, a := range p.Sink.Accs {
		var x place
		always := a.Filter < 0 && (a.Kind == AccRows || !p.Nodes[a.Arg].Nullable)
		switch a.Kind {
		case AccRows, AccCount:
			if always && (a.Kind == AccRows || !p.risky(a.Arg)) {
				x.same = true
				break
			}
			x.shared = l.shared
			l.shared++
		case AccSum:
			x.shared = l.shared
			l.shared += 2
		case AccSum128:
			x.shared = l.shared
			l.shared += 4
		case AccMin, AccMax:
			// Key 0 must not be a value's: with 32 bits it is one, but where each row has
			// a value it is right.
			if x.key32 = always && !p.Nodes[a.Arg].Wide; x.key32 {
				x.shared = l.shared
				l.shared++
			} else {
				x.shared = l.keys
				l.keys++
			}
		}
		if !x.same {
			x.global = l.global
			l.global += a.Kind.Words()
		}
		l.results += a.Kind.Words()
		l.accs = append(l.accs, x)
	}
	return l
}

// sharedGroupBytes is the size of a group in a block's table.
func (l *places) sharedGroupBytes() int64 { return int64(8*l.keys + 4*l.shared) }

// Sizes of the layout of scratch.
const (
	headBytes = 256 // ResultHead of kernels/groups.cuh
	// firstBytes is what Finish reads of a result, its head included, where nobody knows how
	// large it will be, and leastBytes the least: less takes as long.
	firstBytes, leastBytes = 16 << 10, 4 << 10
	// spareBytes bounds what is read beyond what results had before.
	spareBytes = 16 << 10
	// directBytes is the size up to which a table is read as it is: to bring more to another
	// process takes longer than the launch that gathers its groups.
	directBytes = 16 << 10
	// hashSlotsMin and hashSlotsMax bound the slots of PlaceHash.
	hashSlotsMin, hashSlotsMax = 1 << 10, 1 << 28
)

// layout is where things lie in scratch, in bytes: keys, and those of prefixes behind them, table,
// head, words of a large bitmap, result, list. Table and head are cleared by one fill.
type layout struct {
	slots                             uint64 // groups that the table can hold
	numbers                           uint64 // groups that the result can have: Query.Counted where they are counted
	counts                            int64  // of them, behind the table and part of it
	codes                             int64  // how many groups each code has, likewise
	keys, table, head, result, list   int64
	resultBytes                       int64 // without the head
	keyBytes, tableBytes              int64
	words                             int64 // words of SinkBitmap that are not 0, with their numbers
	wordsMax                          int64 // of which there is room for so many; 0: the bitmap is read as it is
	shift                             uint  // log2 of the vectors of the largest segment
	replicas, tableWords, sharedTable int64
	shared                            int64 // bytes of dynamic shared memory
	stagedLookups, stagedBits         []int64
}

func (g *Generated) layout(q *Query) (l layout) {
	p := g.p
	most := q.MostRows
	if most == 0 {
		for i := range q.Segments {
			most = max(most, q.Segments[i].Rows)
		}
	}
	for most > VectorRows<<l.shift {
		l.shift++
	}
	places := p.places()
	at := int64(0)
	switch p.Sink.Kind {
	case SinkGroups:
		switch p.Sink.Place {
		case PlaceSingle:
			l.slots = 1
		case PlaceHash:
			l.slots = min(max(uint64(1)<<min(bits.Len64(q.Expect)+1, 40), hashSlotsMin), hashSlotsMax)
			l.keyBytes = int64(l.slots) * 8
			if p.Sink.Prefix > 0 {
				l.keyBytes *= 2
			}
			at += l.keyBytes
		default:
			l.slots = q.Groups
		}
		l.table = at
		l.tableBytes = (int64(l.slots)*int64(places.global)*8 + 255) &^ 255
		l.numbers = l.slots
		if p.Sink.Counted {
			l.counts = l.table + l.tableBytes
			l.tableBytes += (int64(q.Counted)*8 + 255) &^ 255
			l.numbers = q.Counted
		}
		if p.Sink.Top {
			l.codes = l.table + l.tableBytes
			if l.tableBytes += topCodes * 8; p.Sink.TopThen != TopAll {
				l.tableBytes += topCodes * 8
			}
		}
		at += l.tableBytes
		l.resultBytes = int64(l.numbers) * int64(places.results) * 8
	case SinkBitmap:
		l.resultBytes = int64(len(q.Segments)) << l.shift * (VectorRows / 8)
	}
	if l.resultBytes > directBytes && p.Sink.Kind == SinkBitmap {
		l.wordsMax = l.resultBytes / 8 / 4
	}
	l.head = at
	l.words = at + headBytes
	l.result = (l.words + 16*l.wordsMax + 255) &^ 255
	l.list = (l.result + l.resultBytes + 255) &^ 255

	for i := range p.Lookups {
		l.stagedLookups = append(l.stagedLookups, l.shared)
		if i < len(g.t.StageLookups) && g.t.StageLookups[i] {
			l.shared += bitmapBytes(q.Lookups[i].Size)
		}
	}
	for i := range q.Bits {
		l.stagedBits = append(l.stagedBits, l.shared)
		if i < len(g.t.StageBits) && g.t.StageBits[i] {
			l.shared += bitmapBytes(q.Bits[i].Size)
		}
	}
	if p.Sink.Kind == SinkGroups && p.Sink.Place == PlaceShared {
		l.sharedTable = l.shared
		l.tableWords = (int64(l.slots)*places.sharedGroupBytes() + 7) / 8 * 2
		// Few groups have several tables, so that the lanes of a warp mostly meet others.
		l.replicas = 1
		for l.replicas < laneCount && 2*l.replicas*l.tableWords*4 <= int64(g.t.TableBytes) {
			l.replicas *= 2
		}
		l.shared += l.replicas * l.tableWords * 4
	}
	return l
}
