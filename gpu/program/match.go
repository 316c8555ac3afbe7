package program

import (
	"bytes"
	"slices"

	"pgaccel/gpu/device"
)

// Match is a condition on the strings of a dictionary, whose codes a StepBits tests: an automaton (compress.Matcher) that
// a device runs over the strings as package colstore has packed them. What it finds are the bits of the set.
type Match struct {
	Strings Strings
	Next    []uint8 // by state<<8 | code; the first state is 0
	Accept  [2]uint64
	// Rest has what else is matched, a bit for each code from RestFirst*MatchStrings on: of strings that are not packed.
	Rest      []uint16
	RestFirst int
	// Host returns the bits as the processor finds them, for Reference.
	Host func() []uint64
}

// Strings are packed strings, of codes 0..N-1.
type Strings struct {
	ID     uint64 // as SegmentColumn.ID
	N      int
	Data   []byte   // whose last 8 bytes are zeros
	Starts []uint32 // of blocks of MatchStrings in Data, and where the last one ends
}

const (
	// MatchStrings is the number of strings of a block.
	MatchStrings = 16
	// MatchStates bounds the states of an automaton: the bits of Match.Accept.
	MatchStates = 128

	matchThreads = 256
)

// same reports whether two conditions match the same codes.
func (m *Match) same(o *Match) bool {
	return m == o || m != nil && o != nil && m.Strings.ID == o.Strings.ID && m.Strings.ID != 0 && m.Accept == o.Accept &&
		m.RestFirst == o.RestFirst && bytes.Equal(m.Next, o.Next) && slices.Equal(m.Rest, o.Rest)
}

// Same reports whether two sets have the same values.
func (d *Bits) Same(o *Bits) bool {
	return d.Lo == o.Lo && d.Size == o.Size && (d.ID != 0 && d.ID == o.ID || d.Match.same(o.Match) && slices.Equal(d.Bits, o.Bits))
}

// words returns a set's bits.
func (d *Bits) words() []uint64 {
	if d.Match != nil {
		return d.Match.Host()
	}
	return d.Bits
}

// BitsBytes is the size of a set in device memory: PackBits of it, or what Launch writes.
func BitsBytes(d *Bits) int64 { return max(bitmapBytes(d.Size), 16) }

// StringsBytes is the size of strings in device memory, and where in it their starts begin.
func StringsBytes(s *Strings) (bytes, starts int64) {
	starts = padded(int64(len(s.Data)))
	return starts + padded(4*int64(len(s.Starts))), starts
}

// Matching says where what a Match reads and writes lies in device memory.
type Matching struct {
	Of         *Bits
	Strings    device.Pointer // StringsBytes
	Next, Rest device.Pointer
	To         device.Pointer // BitsBytes
}

// Launch returns the command that matches. m is the module of TranscodeSource.
func (at *Matching) Launch(m device.Module) device.Command {
	of := at.Of.Match
	_, starts := StringsBytes(&of.Strings)
	groups := (uint32(at.Of.Size) + MatchStrings - 1) / MatchStrings
	states := uint32(len(of.Next) / 256)
	p := new(device.Params).Ptr(at.Strings).Ptr(at.Strings + device.Pointer(starts)).Ptr(at.Next).Ptr(at.Rest).Ptr(at.To).
		U64(of.Accept[0]).U64(of.Accept[1]).U32(uint32(of.Strings.N)).U32(groups).U32(uint32(of.RestFirst)).U32(states)
	return device.Command{Op: device.OpLaunch, Module: m, Function: "match",
		Grid: [3]uint32{(groups + matchThreads - 1) / matchThreads, 1, 1}, Block: [3]uint32{matchThreads, 1, 1},
		Shared: 256 * states, Params: p.Bytes()}
}
