package program

import (
	"encoding/binary"
	"math"
	"unsafe"

	"pgaccel/internal/bulk"
	"pgaccel/internal/processors"
)

// blob appends arrays to b, each padded to 16 bytes, as b is. Its memory is package bulk's.
type blob struct {
	b     []byte
	began int // length of b before
}

func appendTo(b []byte) blob { return blob{b, len(b)} }

// pad pads, for which there is room.
func (b *blob) pad() {
	for len(b.b)%16 != 0 {
		b.b = append(b.b, 0)
	}
}

// grow makes room for n bytes, padding included.
func (b *blob) grow(n int64) { b.b = bulk.Grow(b.b, int(padded(n))) }

// appendArray appends integers as memory has them: all of Go's architectures that pgaccel is built for have the lowest byte first.
func appendArray[T uint8 | uint16 | uint32 | uint64 | int32 | int64](b *blob, a []T) {
	if len(a) == 0 {
		return
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(a))), len(a)*int(unsafe.Sizeof(a[0])))
	b.grow(int64(len(bytes)))
	at := len(b.b)
	b.b = b.b[:at+len(bytes)]
	processors.ParallelFor(len(bytes), 8*integersGrain, func(from, to int) { copy(b.b[at+from:], bytes[from:to]) })
	b.pad()
}

// integersGrain is how many values a goroutine packs, at least.
const integersGrain = 1 << 16

// integers appends values of 64 bits or of 32.
func (b *blob) integers(values []int64, wide bool) {
	if wide {
		appendArray(b, values)
		return
	}
	if len(values) == 0 {
		return
	}
	b.grow(4 * int64(len(values)))
	at := len(b.b)
	b.b = b.b[:at+4*len(values)]
	out := unsafe.Slice((*int32)(unsafe.Pointer(&b.b[at])), len(values))
	processors.ParallelFor(len(values), integersGrain, func(from, to int) {
		out := out[from:to]
		for i, v := range values[from:to] {
			out[i] = int32(v)
		}
	})
	b.pad()
}

// flags appends n bytes, zeros where f is nil.
func (b *blob) flags(f []uint8, n int) {
	if f == nil {
		f = make([]uint8, n)
	}
	appendArray(b, f)
}

// bytes returns the arrays: not nothing, so that they have an address.
func (b *blob) bytes() []byte {
	if len(b.b) == b.began {
		b.b = append(b.b, make([]byte, 16)...)
	}
	return b.b
}

// padded is n bytes with their padding.
func padded(n int64) int64 { return (n + 15) &^ 15 }

// bitmapBytes is the size of a bitmap of n bits in 64-bit words, padded.
func bitmapBytes(n int64) int64 { return padded((max(n, 0) + 63) / 64 * 8) }

// AppendBits appends a set of StepBits as device memory has it: 64-bit words, padded to 16
// bytes. This and what follows append to nothing, or to what they have appended, in memory of package bulk.
func AppendBits(to []byte, d *Bits) []byte {
	b := appendTo(to)
	appendArray(&b, d.Bits[:(max(d.Size, 0)+63)/64])
	return b.bytes()
}

// AppendBytes appends bytes.
func AppendBytes(to, data []byte) []byte {
	b := appendTo(to)
	appendArray(&b, data)
	return b.bytes()
}

// AppendSet appends a set of OpIn: its values.
func AppendSet(to []byte, values []int64) []byte {
	b := appendTo(to)
	appendArray(&b, values)
	return b.bytes()
}

// width4or8 is the size of a value.
func width4or8(wide bool) int64 {
	if wide {
		return 8
	}
	return 4
}

// AppendTable appends a table: values (int32, or int64 where Wide) and, where it has them,
// nulls and faults, each padded to 16 bytes.
func AppendTable(to []byte, t Table, d *TableData) []byte {
	b := appendTo(to)
	b.integers(d.Values, t.Wide)
	if t.Nulls {
		b.flags(d.Nulls, len(d.Values))
	}
	if t.Faults {
		b.flags(d.Faults, len(d.Values))
	}
	return b.bytes()
}

// AppendLookup appends a lookup: a bitmap of the keys that have a partner, in 64-bit words,
// then entries; of LookupHash keys, then entries; where keys have many partners, First and Partners.
// Each is padded to 16 bytes.
func AppendLookup(to []byte, l *Lookup, d *LookupData) []byte {
	n := max(d.Size, 0)
	b := appendTo(to)
	bytes := keysBytes(l.Kind, d)
	if l.Many {
		bytes += padded(4*int64(len(d.First))) + padded(4*int64(len(d.Partners)))
	}
	b.grow(bytes)
	switch l.Kind {
	case LookupHash:
		appendArray(&b, d.HashKeys)
		appendArray(&b, d.HashEntries)
	case LookupBits:
		appendArray(&b, d.Bits[:(n+63)/64])
	case Lookup8:
		present(&b, d.E8[:n], presentWord8)
		appendArray(&b, d.E8[:n])
	case Lookup16:
		present(&b, d.E16[:n], presentWord)
		appendArray(&b, d.E16[:n])
	case Lookup32:
		present(&b, d.E32[:n], presentWord)
		appendArray(&b, d.E32[:n])
	}
	if l.Many {
		appendArray(&b, d.First)
		appendArray(&b, d.Partners)
	}
	return b.bytes()
}

// keysBytes is where in what AppendLookup appends, what finds keys ends, and First begins.
func keysBytes(kind LookupKind, d *LookupData) int64 {
	if kind == LookupHash {
		slots := d.slots()
		return padded(8*slots) + padded(4*slots)
	}
	return bitmapBytes(d.Size) + padded(max(d.Size, 0)*kind.EntryBytes())
}

// presentGrain is of how many entries, times 64, a goroutine makes the bitmap, at least.
const presentGrain = 1 << 11

// present appends a bitmap of the entries that are not all ones, in 64-bit words. word makes one of up to 64 entries.
func present[T uint8 | uint16 | uint32](b *blob, entries []T, word func(entries []T) uint64) {
	words := (len(entries) + 63) / 64
	b.grow(8 * int64(words))
	at := len(b.b)
	b.b = b.b[:at+8*words]
	processors.ParallelFor(words, presentGrain, func(from, to int) {
		for w := from; w < to; w++ {
			binary.LittleEndian.PutUint64(b.b[at+8*w:], word(entries[64*w:min(64*w+64, len(entries))]))
		}
	})
	b.pad()
}

func presentWord[T uint8 | uint16 | uint32](entries []T) (w uint64) {
	for i, e := range entries {
		var bit uint64
		if e != ^T(0) {
			bit = 1
		}
		w |= bit << i
	}
	return w
}

// presentWord8 is presentWord of bytes, eight at a time.
func presentWord8(entries []uint8) (w uint64) {
	if len(entries) < 64 {
		return presentWord(entries)
	}
	const low7, ones = 0x7f7f7f7f7f7f7f7f, 0x0101010101010101
	for i := range 8 {
		absent := ^binary.LittleEndian.Uint64(entries[8*i:]) // bytes of zeros
		bits := ((absent&low7 + low7) | absent) >> 7 & ones
		w |= bits * 0x0102040810204080 >> 56 << (8 * i)
	}
	return w
}

// EntryBytes is the size of an entry of a dense lookup.
func (k LookupKind) EntryBytes() int64 {
	switch k {
	case Lookup8:
		return 1
	case Lookup16:
		return 2
	case Lookup32:
		return 4
	}
	return 0
}

// Find returns the entry of a key; ok is false where it has no partner.
func (d *LookupData) Find(kind LookupKind, key int64) (e uint32, ok bool) {
	if kind == LookupHash {
		e = d.HashEntries[d.slot(key)]
		return e, e != math.MaxUint32
	}
	at := uint64(key) - uint64(d.Lo)
	if at >= uint64(max(d.Size, 0)) {
		return 0, false
	}
	return d.entry(kind, int64(at))
}

// entry returns the entry at a position of a dense lookup; ok is false where there is no
// partner.
func (d *LookupData) entry(kind LookupKind, at int64) (e uint32, ok bool) {
	switch kind {
	case LookupBits:
		return 0, d.Bits[at>>6]>>(at&63)&1 != 0
	case Lookup8:
		return uint32(d.E8[at]), d.E8[at] != math.MaxUint8
	case Lookup16:
		return uint32(d.E16[at]), d.E16[at] != math.MaxUint16
	}
	return d.E32[at], d.E32[at] != math.MaxUint32
}

// BuiltBytes is the size of the lookup that q's SinkBuild makes, in AppendLookup's layout.
func BuiltBytes(q *Query) int64 {
	return max(bitmapBytes(q.BuildSize)+padded(max(q.BuildSize, 0)*q.Sink.Build.EntryBytes()), 16)
}

// AppendOuts appends what a lookup delivers: of each output values (int32, or int64 where
// Wide) and, where it is Nullable, nulls, each padded to 16 bytes.
func AppendOuts(to []byte, l *Lookup, d *LookupData) []byte {
	b := appendTo(to)
	for i, o := range l.Outs {
		b.integers(d.Outs[i].Values, o.Wide)
		if o.Nullable {
			b.flags(d.Outs[i].Nulls, len(d.Outs[i].Values))
		}
	}
	return b.bytes()
}

// outOffsets returns where in what AppendOuts appends an output's values begin, and its nulls.
func outOffsets(l *Lookup, d *LookupData, out int) (values, nulls int64) {
	at := int64(0)
	for i, o := range l.Outs {
		n := int64(len(d.Outs[i].Values))
		values = at
		at += padded(n * width4or8(o.Wide))
		nulls = at
		if o.Nullable {
			at += padded(n)
		}
		if i == out {
			break
		}
	}
	return values, nulls
}
