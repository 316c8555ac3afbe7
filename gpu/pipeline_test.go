package gpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// reordered executes the commands of a batch's streams in any order that its events allow:
// what is right only as it stands, or awaits too little, computes something else.
type reordered struct {
	device.Executor
	mu   sync.Mutex
	rand *rand.Rand
	side float64 // how likely a copy stream goes first
}

func (o *reordered) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	if _, err := b.Check(); err != nil {
		return nil, err
	}
	// What an OpAwait awaits: the last record of the event before it, by its place.
	var streams [1 + device.CopyStreams][]int
	awaits := map[int]int{}
	var recorded [device.Events]int
	for i := range b.Commands {
		c := &b.Commands[i]
		switch c.Op {
		case device.OpRecord:
			recorded[c.Event] = i
		case device.OpAwait:
			awaits[i] = recorded[c.Event]
		}
		streams[c.Side] = append(streams[c.Side], i)
	}
	done := make([]bool, len(b.Commands))
	one := &device.Batch{Stream: b.Stream}
	o.mu.Lock()
	for left := len(b.Commands); left > 0; left-- {
		at := 0
		if o.rand.Float64() < o.side {
			at = 1 + o.rand.IntN(device.CopyStreams)
		}
		for ; ; at = (at + 1) % len(streams) {
			if list := streams[at]; len(list) > 0 {
				if i, ok := awaits[list[0]]; !ok || done[i] {
					break
				}
			}
		}
		i := streams[at][0]
		streams[at], done[i] = streams[at][1:], true
		if c := b.Commands[i]; c.Op != device.OpRecord && c.Op != device.OpAwait {
			c.Side = 0
			one.Commands = append(one.Commands, c)
		}
	}
	o.mu.Unlock()
	return o.Executor.Run(ctx, dev, one)
}

// TestReordered streams queries through few buffers, with copies as early or as late as may be.
func TestReordered(t *testing.T) {
	for _, side := range []float64{0, 0.5, 1} {
		for _, budget := range []int64{280 << 10, 600 << 10, 64 << 20} {
			r := rand.New(rand.NewPCG(15, uint64(budget)))
			mem := newMemory(t, 4<<20)
			ex := &reordered{Executor: newEmulator(t, emulator.Options{}), rand: rand.New(rand.NewPCG(16, 16)), side: side}
			m := newManager(t, Options{Memory: budget, chunk: 8 << 10, File: mem.f, Offset: mem.offset}, ex)
			fact, dim := testTables(r, mem)
			for i := range 30 {
				if r.IntN(6) == 0 {
					fact.change(r)
				}
				q := testShapes[i%len(testShapes)](r, fact, dim)
				for range 3 {
					if err := compare(m, q); err != nil {
						t.Fatalf("side %v, budget %d, query %d: %v", side, budget, i, err)
					}
				}
				if err := m.idle(); err != nil {
					t.Fatal(err)
				}
			}
			if s := m.Status()[0]; s.Streamed == 0 && budget < 600<<10 {
				t.Errorf("%+v", s)
			}
		}
	}
}

// TestOverlap streams a table. All chunks come in one batch, in their order, each while another is
// computed, as long as there are buffers; beside copies kernels leave multiprocessors free, and
// wait for nothing else from the host; only they count as computing.
func TestOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	sms := f.Devices()[0].SMs
	chunks := 0
	f.run = func(_ int64, b *device.Batch) error {
		var copied, computed int
		last := int64(-1)
		// Marks stand in pairs around what computes; one before all of them is for the time of the first copies.
		marks := 0
		for _, c := range b.Commands {
			if c.Op == device.OpMark {
				marks ^= 1
			}
		}
		sides := slices.ContainsFunc(b.Commands, func(c device.Command) bool { return c.Side > 0 })
		if !sides {
			return nil
		}
		for i := range b.Commands {
			switch c := &b.Commands[i]; {
			case c.Op == device.OpMark:
				marks++
			case c.Op == device.OpWrite && c.Side == 0 && copied > 0:
				return fmt.Errorf("%d bytes are written to the device while copies run", len(c.Data))
			case c.Op == device.OpCopyShared:
				if c.Side == 0 {
					return errors.New("columns do not come beside kernels")
				}
				// The table lies in memory segment by segment.
				if c.Pieces[0].Offset <= last {
					return fmt.Errorf("copy %d is of a chunk before the one before", copied)
				}
				last = c.Pieces[0].Offset
				copied++
			case c.Op == device.OpLaunch && c.Side > 0:
				return fmt.Errorf("%s on the stream of copies", c.Function)
			case c.Op == device.OpLaunch && strings.HasPrefix(c.Function, "scan"):
				computed++
				if marks%2 == 0 {
					return errors.New("a scan does not count as computing")
				}
				if computed <= chunks && copied < min(computed+buffersMax-1, chunks) {
					return fmt.Errorf("%d of %d chunks are copied before the %dth is computed", copied, chunks, computed)
				}
				if computed < chunks && int(c.Grid[0]) > besideCopies(sms) {
					return fmt.Errorf("%d blocks on %d multiprocessors, beside copies", c.Grid[0], sms)
				}
			}
		}
		if computed == 0 {
			return nil // it brings what is kept
		}
		if copied != computed || copied < 2 {
			return fmt.Errorf("%d chunks are copied, %d computed", copied, computed)
		}
		chunks = copied
		return nil
	}
	mem := newMemory(t, 4<<20)
	m := newManager(t, Options{Memory: 150 << 10, chunk: 16 << 10, File: mem.f, Offset: mem.offset}, f)
	fact := newTable(r, mem, factColumns, slices.Repeat([]int{500}, 24)...)
	q := testShapes[0](r, fact, nil)
	q.Ranges[0] = program.Range{Lo: 0, Hi: 1 << 40}
	for range 4 { // what fits is kept; then count, then watch
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	if chunks < 2 {
		t.Fatalf("%d chunks", chunks)
	}
}
