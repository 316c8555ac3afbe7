package program

import (
	"bytes"
	"slices"

	"pgaccel/gpu/device"
)

// Strings are those of a dictionary as package colstore has packed them, of codes 0..N-1.
type Strings struct {
	ID     uint64 // as SegmentColumn.ID
	N      int
	Data   []byte   // whose last 8 bytes are zeros
	Starts []uint32 // of blocks of StringsOfBlock in Data, and where the last one ends
}

// Match is a condition on the strings of a dictionary, whose codes a StepBits tests: an automaton (compress.Matcher) that
// a device runs over them before it scans. What it finds are the bits of the set.
type Match struct {
	Strings Strings
	Next    []uint8 // state by state<<8 | code; the first one is 0
	Accept  [2]uint64
	// Rest has what else is matched, a bit for each code from RestFirst*StringsOfBlock on: of strings that are not packed.
	Rest      []uint16
	RestFirst int
	// Host returns the bits as the processor finds them, for Reference.
	Host func() []uint64
}

// Lengths are the values of a Table of 32 bits, by the codes of a dictionary, that a device finds likewise: a string's is the
// sum of what its codes add, at most 127 each.
type Lengths struct {
	Strings Strings
	// CodeLengths has, by state<<8 | code, what a code adds, and in bit 7 whether a byte follows it, which state 1 is for.
	CodeLengths []uint8
	Rest        []int32 // of strings that are not packed
	// Host returns the values as the processor finds them, for Reference.
	Host func() []int64
}

const (
	// StringsOfBlock is the number of strings of a block.
	StringsOfBlock = 16
	// MatchStates bounds the states of a Match: the bits of Accept.
	MatchStates = 128

	stringsThreads = 256
)

// same reports whether two conditions match the same codes.
func (m *Match) same(o *Match) bool {
	return m == o || m != nil && o != nil && m.Strings.ID == o.Strings.ID && m.Strings.ID != 0 && m.Accept == o.Accept &&
		m.RestFirst == o.RestFirst && bytes.Equal(m.Next, o.Next) && slices.Equal(m.Rest, o.Rest)
}

func (m *Lengths) same(o *Lengths) bool {
	return m == o || m != nil && o != nil && m.Strings.ID == o.Strings.ID && m.Strings.ID != 0 &&
		bytes.Equal(m.CodeLengths, o.CodeLengths) && slices.Equal(m.Rest, o.Rest)
}

// Same reports whether two sets have the same values.
func (d *Bits) Same(o *Bits) bool {
	return d.Lo == o.Lo && d.Size == o.Size && (d.ID != 0 && d.ID == o.ID || d.Match.same(o.Match) && slices.Equal(d.Bits, o.Bits))
}

// Same reports whether two tables have the same content.
func (d *TableData) Same(o *TableData) bool {
	return d.Lo == o.Lo && d.OnNull == o.OnNull && d.OnNullNull == o.OnNullNull && d.OnNullFault == o.OnNullFault &&
		(d.ID != 0 && d.ID == o.ID || d.Lengths.same(o.Lengths) &&
			slices.Equal(d.Values, o.Values) && slices.Equal(d.Nulls, o.Nulls) && slices.Equal(d.Faults, o.Faults))
}

// words returns a set's bits.
func (d *Bits) words() []uint64 {
	if d.Match != nil {
		return d.Match.Host()
	}
	return d.Bits
}

// Size is the number of a table's values.
func (d *TableData) Size() int64 {
	if d.Lengths != nil {
		return int64(d.Lengths.Strings.N + len(d.Lengths.Rest))
	}
	return int64(len(d.Values))
}

// BitsBytes is the size of a set in device memory: AppendBits of it, or what a Match writes.
func BitsBytes(d *Bits) int64 { return max(bitmapBytes(d.Size), 16) }

// LengthsBytes is the size of what Lengths write.
func LengthsBytes(d *TableData) int64 { return max(padded(4*d.Size()), 16) }

// StringsBytes is the size of strings in device memory, and where in it their starts begin.
func StringsBytes(s *Strings) (bytes, starts int64) {
	starts = padded(int64(len(s.Data)))
	return starts + padded(4*int64(len(s.Starts))), starts
}

// StringsAt says where what a Match or Lengths read and write lies in device memory.
type StringsAt struct {
	Strings     device.Pointer // StringsBytes
	Steps, Rest device.Pointer // Next or CodeLengths, and Rest
	To          device.Pointer // BitsBytes or LengthsBytes
}

// launch returns the command of a kernel over some strings and those that are not packed, with the parameters of all such
// kernels, of which some are the kernel's own.
func (at *StringsAt) launch(m device.Module, function string, s *Strings, strings int64, steps []uint8, own func(p *device.Params)) device.Command {
	_, starts := StringsBytes(s)
	blocks := (strings + StringsOfBlock - 1) / StringsOfBlock
	p := new(device.Params).Ptr(at.Strings).Ptr(at.Strings + device.Pointer(starts)).Ptr(at.Steps).
		U32(uint32(s.N)).U32(uint32(len(steps) / 256)).Ptr(at.Rest).Ptr(at.To)
	own(p)
	return device.Command{Op: device.OpLaunch, Module: m, Function: function,
		Grid: [3]uint32{uint32((blocks + stringsThreads - 1) / stringsThreads), 1, 1}, Block: [3]uint32{stringsThreads, 1, 1},
		Shared: uint32(len(steps)), Params: p.Bytes()}
}

// Launch returns the command that finds the bits. module is that of TranscodeSource.
func (m *Match) Launch(module device.Module, d *Bits, at *StringsAt) device.Command {
	return at.launch(module, "match", &m.Strings, d.Size, m.Next, func(p *device.Params) {
		p.U64(m.Accept[0]).U64(m.Accept[1]).U32(uint32((d.Size + StringsOfBlock - 1) / StringsOfBlock)).U32(uint32(m.RestFirst))
	})
}

// Launch returns the command that finds the values. module is that of TranscodeSource.
func (l *Lengths) Launch(module device.Module, d *TableData, at *StringsAt) device.Command {
	return at.launch(module, "measure", &l.Strings, d.Size(), l.CodeLengths, func(p *device.Params) { p.U32(uint32(d.Size())).U32(0) })
}
