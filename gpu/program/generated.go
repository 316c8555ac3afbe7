package program

import (
	"pgaccel/gpu/device"
)

// Tuning holds the choices of a kernel that change its speed and not its result. TuningFor
// makes them; each is part of the generated source.
type Tuning struct {
	Threads     int // of a block: a multiple of 32, at most 1024
	BlocksPerSM int // that are launched for each multiprocessor, and can be resident
	Positions   int // 32-row positions in flight in each warp: 1, 2, 4, 8, 16 or 32
	// Gather is the share of rows, in 64ths, at or below which the rows that are left are
	// gathered into full warps before the next column is read. 0: never.
	Gather int
	// StageLookups and StageBits say which bitmaps blocks copy to their shared memory
	// first, by lookup and by set of StepBits.
	StageLookups, StageBits []bool
	// Widths are the widths of columns that are the same in all segments, so that shifts
	// become constants; -1 where they are not known, or differ. nil: all are -1.
	Widths []int8
}

// TuningFor chooses for an execution on a device: what of q's data fits a block's shared
// memory. It does not look at anything else that differs between executions, so that
// these mostly share a kernel.
func TuningFor(q *Query, info *device.Info) Tuning {
	panic("TODO")
}

// Generated is a Program's kernel.
type Generated struct {
	// Source has the entry points Scan and Collect; what it is called, and they are, ends
	// with a hash of it.
	Source        device.Source
	Scan, Collect string

	p *Program
	t Tuning
}

// Generate makes the kernel of a program. It fails for programs that Validate refuses, and
// for those that need more than a kernel's parameter can hold.
func Generate(p *Program, t Tuning) (*Generated, error) {
	panic("TODO")
}

// Buffers are the places in device memory of what a query's kernels read and write. All are
// aligned to 16 bytes at least. Buffers that would be empty still have 16 bytes.
type Buffers struct {
	Heads   device.Pointer   // descriptors of all segments: AppendSegmentHead
	Columns []device.Pointer // of each of Program.Columns in all segments: AppendColumnSegment
	Bits    []device.Pointer // PackBits of each of Query.Bits
	Sets    []device.Pointer // PackSet of each of Query.Sets
	Tables  []device.Pointer // PackTable of each
	Lookups []device.Pointer // PackLookup of each, or what a SinkBuild left in Built
	Outs    []device.Pointer // PackOuts of each lookup
	Built   device.Pointer   // SinkBuild: BuiltBytes(q), which become the lookup
	Scratch device.Pointer   // ScratchBytes, of any content: groups, list, result
}

// ScratchBytes is the size of Buffers.Scratch for q over as many of its segments.
func (g *Generated) ScratchBytes(q *Query, segments int) int64 { panic("TODO") }

// SharedBytes is the dynamic shared memory of a block: q can run where it is at most
// device.Info.SharedPerBlock.
func (g *Generated) SharedBytes(q *Query) int64 { panic("TODO") }

// Prepare appends the commands that come first: they clear scratch (and Built).
func (g *Generated) Prepare(c []device.Command, q *Query, b *Buffers) []device.Command {
	panic("TODO")
}

// ScanSegments appends the commands that compute the rows of some segments, which list has as
// positions in the arrays of b.Heads and b.Columns, at most 65535; sms is
// device.Info.SMs. It can be called again with other segments, and other Heads and Columns,
// for tables that stream through; Scratch and Built stay the same.
func (g *Generated) ScanSegments(c []device.Command, q *Query, m device.Module, b *Buffers, list []uint32, sms int) []device.Command {
	panic("TODO")
}

// Finish appends the commands that gather and read the result's first part.
func (g *Generated) Finish(c []device.Command, q *Query, m device.Module, b *Buffers, sms int) []device.Command {
	panic("TODO")
}

// Rest returns the command that reads what of the result is missing in its first part, the
// data of the OpRead that Finish appended; ok is false where nothing is.
func (g *Generated) Rest(q *Query, b *Buffers, first []byte) (c device.Command, ok bool) {
	panic("TODO")
}

// Parse makes a result of what was read; rest is nil where there was none. Bitmaps of
// SinkBitmap are in the order of q.Segments: those of segments that no list had are 0.
func (g *Generated) Parse(q *Query, first, rest []byte) (*Result, error) {
	panic("TODO")
}
