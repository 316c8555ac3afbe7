package program

import "pgaccel/gpu/device"

// Tuning holds the choices of a kernel that change its speed and not its result. TuningFor
// makes them; each is part of the generated source.
type Tuning struct {
	Threads     int // of a block: a multiple of 32, at most 1024
	BlocksPerSM int // that are launched for each multiprocessor, and can be resident
	Positions   int // 32-row positions in flight where a vector is not read at once: 1, 2, 4, 8, 16 or 32
	// Gather is the share of rows, in 64ths, at or below which the rows that are left are
	// gathered into full warps before the next column is read, and Queues how often they
	// are: 0 to 2.
	Gather, Queues int
	// StageLookups and StageBits say which bitmaps blocks copy to their shared memory
	// first, by lookup and by set of StepBits.
	StageLookups, StageBits []bool
	// TableBytes is the shared memory for more than one table of few groups in a block, so
	// that its warps mostly add to different words.
	TableBytes int
	// Widths are the widths of columns that are the same in all segments, so that shifts
	// become constants (measured on an H200: 0.14 ms instead of 0.37 of a query of three
	// ranges); -1 where they are not known, or differ. nil: all are -1.
	Widths []int8
}

// sharedReserve is what the system takes of the shared memory that a block can have, and
// some for the small things that are static.
const sharedReserve = 2 << 10

// TuningFor chooses for an execution on a device: what of q's data fits a block's shared
// memory. It does not look at anything else that differs between executions, so that
// these mostly share a kernel.
func TuningFor(q *Query, info *device.Info) Tuning {
	t := Tuning{Threads: 1024, BlocksPerSM: 1, Positions: 4, Gather: 16, Queues: 2}
	if info.Kind == device.Emulator {
		t.Threads = 64
	}
	t.StageLookups = make([]bool, len(q.Program.Lookups))
	t.StageBits = make([]bool, len(q.Bits))
	g := &generator{p: q.Program, t: t}
	stages := g.stages()
	left := int64(info.SharedPerBlock) - sharedReserve
	for k := 1; k < len(stages); k++ {
		left -= int64(t.Threads / 32 * queueRows(k) * 4)
	}
	if q.Sink.Kind == SinkGroups && q.Sink.Place == PlaceShared {
		places := q.places()
		left -= int64(q.Groups)*places.sharedGroupBytes() + 8
	}
	take := func(bytes int64) bool {
		if bytes > left {
			return false
		}
		left -= bytes
		return true
	}
	// Only bitmaps that all rows are probed with: for few rows the cache does as well, and
	// what is staged is taken from it.
	for _, s := range stages[0] {
		switch {
		case s.Kind == StepBits && !t.StageBits[s.Index]:
			t.StageBits[s.Index] = take(bitmapBytes(q.Bits[s.Index].Size))
		case s.Kind == StepProbe && q.Program.Lookups[s.Index].Kind != LookupHash && !q.Program.Lookups[s.Index].Left && !t.StageLookups[s.Index]:
			t.StageLookups[s.Index] = take(bitmapBytes(q.Lookups[s.Index].Size))
		}
	}
	t.TableBytes = int(max(min(left, 8<<10), 0))
	return t
}
