package gpucube

import (
	"encoding/binary"
	"fmt"
	"math"

	"pgaccel/gpu/device"
)

// Limits of generated scans.
const (
	steadyShare  = 0.9      // columns with so many vectors of one code are read from their zones
	jointBits    = 5        // small columns share a table of so many bits: its words lie in different banks
	smallEntries = 2048     // tables up to so many codes hold places, larger ones numbers of classes
	irrelevant   = -1 << 26 // place of codes outside the source area: no sum of maxDims gets above 0
	maxPlaces    = 1 << 25
)

// scan is a generated scan: from cells to sums of combinations of classes.
type scan struct {
	code     string
	tables   []byte // image: what goes to shared memory, then what stays
	near     int    // bytes of tables that go to shared memory
	columns  []int  // dimensions in the order of CubeScan.columns
	steady   []int  // those among them with zones, in the order of CubeScan.zones
	places   uint64
	copies   int
	threads  int
	blocks   int // for each multiprocessor
	shared   int // bytes
	inGlobal bool
	strides  []uint64 // by dimension, of a class within a place
	image    device.Pointer
}

// group are columns that are looked up together.
type group struct {
	dims   []int
	steady bool
	bits   int
}

// generator writes one scan.
type generator struct {
	s        *scan
	k        *classes
	dims     []dimension
	groups   []group
	fits32   bool   // values times factors
	value    string // type of those
	relevant bool   // no cell lies outside the source area
	far      []byte
}

// factorBound returns the largest magnitude of the product of a cell's factors, and whether
// all products are greater than 0.
func (k *classes) factorBound() (most uint64, positive bool) {
	most, positive = 1, true
	for _, d := range k.dims {
		m := uint64(0)
		for e, c := range d.of {
			if c >= 0 {
				m = max(m, magnitude(d.factor[e]))
				positive = positive && d.factor[e] > 0
			}
		}
		most = mulSaturated(most, m)
	}
	return most, positive
}

// generate writes the scan of a method, or says why there is none.
func (q *Query[N]) generate(method Method) (*scan, error) {
	k := q.classes
	switch {
	case k.places > maxPlaces:
		return nil, unavailable("%d combinations of classes", k.places)
	case method == ClassesRegister && k.places != 1:
		return nil, unavailable("%d combinations of classes, not one", k.places)
	}
	s := &scan{places: k.places, copies: 1, threads: 512, blocks: 2, inGlobal: method == ClassesGlobal, strides: make([]uint64, len(k.dims))}
	stride := uint64(1)
	for d := len(k.dims) - 1; d >= 0; d-- {
		s.strides[d] = stride
		stride *= uint64(k.dims[d].count())
	}
	factor, positive := k.factorBound()
	product := mulSaturated(max(magnitude(q.c.base), magnitude(q.c.most)), factor)
	g := &generator{s: s, k: k, dims: q.c.dims, fits32: product < 1<<31 && factor < 1<<31, value: "cube_i64", relevant: true}
	if g.fits32 {
		g.value = "int32_t"
	}
	definite := positive && (q.c.base > 0 || q.c.most < 0)
	room := max(q.c.info.SharedPerBlock-1024, 0)
	const words = 8 // of a place, for each copy
	flags := 0
	if !definite {
		flags = int(min(s.places, maxPlaces))
	}
	if method == ClassesShared {
		if int(s.places)*words+flags > room {
			return nil, unavailable("%d combinations of classes need %d bytes of shared memory", s.places, int(s.places)*words+flags)
		}
		// Copies for lanes, as long as two blocks fit a multiprocessor.
		for s.copies < 32 && int(s.places)*words*s.copies*2+flags <= min(room, q.c.info.SharedPerSM/2)*3/4 {
			s.copies *= 2
		}
	}
	g.group()
	table := 0
	if method == ClassesShared {
		table = int(s.places)*words*s.copies + flags
	}
	accessors := g.lookups(room - table)
	s.shared = s.near + table
	if s.shared*2+4096 > q.c.info.SharedPerSM {
		s.threads, s.blocks = 1024, 1
	}
	rounds := s.rounds(product)
	windows := method == ClassesShared && g.fits32 && rounds > 0 && mulSaturated(q.c.absSum, factor) < 1<<46
	g.write(q.c.low.width, q.c.high.width, windows, definite, method, accessors, rounds)
	s.tables = append(s.tables, g.far...)
	return s, nil
}

// group decides which columns are read, and which are looked up together.
func (g *generator) group() {
	var small group
	flush := func() {
		if len(small.dims) > 0 {
			g.groups = append(g.groups, small)
		}
		small = group{}
	}
	for d := range g.k.dims {
		k := &g.k.dims[d]
		width := g.dims[d].width
		if k.count() == 1 && k.all && !k.factors || width == 0 {
			continue // it neither moves a cell nor keeps one out
		}
		g.relevant = g.relevant && k.all
		steady := g.dims[d].steady >= steadyShare
		g.s.columns = append(g.s.columns, d)
		if steady {
			g.s.steady = append(g.s.steady, d)
		}
		if steady || width > jointBits || g.identity(d) {
			g.groups = append(g.groups, group{[]int{d}, steady, width})
			continue
		}
		if small.bits+width > jointBits {
			flush()
		}
		small.dims = append(small.dims, d)
		small.bits += width
	}
	flush()
}

// identity reports whether codes are classes.
func (g *generator) identity(d int) bool {
	k := &g.k.dims[d]
	for e, c := range k.of {
		if int(c) != e {
			return false
		}
	}
	return !k.factors
}

// column returns the position of a dimension in CubeScan.columns.
func (s *scan) column(d int) int {
	for i, c := range s.columns {
		if c == d {
			return i
		}
	}
	panic("BUG: a column that is not read")
}

// place appends a table in shared memory while there is room, else in global memory, and
// returns the expression of its address.
func (g *generator) place(table []byte, room int) string {
	for len(table)%8 != 0 {
		table = append(table, 0)
	}
	if g.s.near+len(table) <= room {
		at := g.s.near
		g.s.tables = append(g.s.tables, table...)
		g.s.near += len(table)
		return fmt.Sprintf("(near + %d)", at)
	}
	at := len(g.far)
	g.far = append(g.far, table...)
	return fmt.Sprintf("(far + %d)", at)
}

// lookups makes the tables and returns, for each group, the statements that add its part to
// place and factor.
func (g *generator) lookups(room int) []string {
	var out []string
	copies := uint64(g.s.copies)
	near := room
	for _, gr := range g.groups {
		room := near
		if gr.steady {
			room = 0 // one lookup a vector
		}
		d := gr.dims[0]
		k := &g.k.dims[d]
		x := fmt.Sprintf("e%d", g.s.column(d))
		switch {
		case len(gr.dims) == 1 && g.identity(d):
			out = append(out, fmt.Sprintf("place += int32_t(%s * %du);", x, g.s.strides[d]*copies))
		case len(gr.dims) == 1 && len(k.of) > smallEntries:
			out = append(out, g.large(d, x, room))
		default:
			out = append(out, g.joint(gr, room))
		}
	}
	return out
}

// large is the lookup of a dimension with many codes: numbers of classes, as small as they are.
func (g *generator) large(d int, x string, room int) string {
	k := &g.k.dims[d]
	var table []byte
	typ, none := "uint32_t", uint64(math.MaxUint32)
	switch n := k.count(); {
	case n < math.MaxUint8:
		typ, none = "uint8_t", math.MaxUint8
	case n < math.MaxUint16:
		typ, none = "uint16_t", math.MaxUint16
	}
	for _, c := range k.of {
		v := uint32(none)
		if c >= 0 {
			v = uint32(c)
		}
		switch typ {
		case "uint8_t":
			table = append(table, byte(v))
		case "uint16_t":
			table = binary.LittleEndian.AppendUint16(table, uint16(v))
		default:
			table = binary.LittleEndian.AppendUint32(table, v)
		}
	}
	out := fmt.Sprintf("uint32_t c%s = reinterpret_cast<const %s *>(%s)[%s];\n", x, typ, g.place(table, room), x)
	stride := g.s.strides[d] * uint64(g.s.copies)
	if k.all {
		out += fmt.Sprintf("\t\tplace += int32_t(c%s * %du);", x, stride)
	} else {
		out += fmt.Sprintf("\t\tplace += c%s == %du ? %d : int32_t(c%s * %du);", x, none, irrelevant, x, stride)
	}
	if k.factors {
		out += "\n\t\t" + g.factors(k.factor, x, room)
	}
	return out
}

// factors is the lookup of factors.
func (g *generator) factors(factor []int64, x string, room int) string {
	var table []byte
	for _, f := range factor {
		if g.fits32 {
			table = binary.LittleEndian.AppendUint32(table, uint32(f))
		} else {
			table = binary.LittleEndian.AppendUint64(table, uint64(f))
		}
	}
	return fmt.Sprintf("factor *= reinterpret_cast<const %s *>(%s)[%s];", g.value, g.place(table, room), x)
}

// joint is the lookup of one dimension, or of several small ones by their bits together.
func (g *generator) joint(gr group, room int) string {
	size := 1 << gr.bits
	if len(gr.dims) == 1 {
		size = len(g.k.dims[gr.dims[0]].of)
	}
	places, factors := make([]byte, 0, 4*size), make([]int64, size)
	moves, multiplies := false, false
	for x := range size {
		place, factor, rest := int64(0), int64(1), x
		for _, d := range gr.dims {
			k := &g.k.dims[d]
			e := rest & (1<<g.dims[d].width - 1)
			rest >>= g.dims[d].width
			if e >= len(k.of) || k.of[e] < 0 {
				place += irrelevant
				moves = moves || e < len(k.of)
				continue
			}
			if place >= 0 {
				place += int64(k.of[e]) * int64(g.s.strides[d]) * int64(g.s.copies)
			}
			moves = moves || k.of[e] > 0
			factor *= k.factor[e]
			multiplies = multiplies || k.factor[e] != 1
		}
		if place < 0 {
			place, factor = irrelevant, 1
		}
		places = binary.LittleEndian.AppendUint32(places, uint32(int32(place)))
		factors[x] = factor
	}
	index, shift := "", 0
	for i, d := range gr.dims {
		if i > 0 {
			index += " | "
		}
		if index += fmt.Sprintf("e%d", g.s.column(d)); shift > 0 {
			index += fmt.Sprintf(" << %d", shift)
		}
		shift += g.dims[d].width
	}
	name := fmt.Sprintf("x%d", g.s.column(gr.dims[0]))
	out := fmt.Sprintf("uint32_t %s = %s;", name, index)
	if moves {
		out += fmt.Sprintf("\n\t\tplace += reinterpret_cast<const int32_t *>(%s)[%s];", g.place(places, room), name)
	}
	if multiplies {
		out += "\n\t\t" + g.factors(factors, name, room)
	}
	return out
}
