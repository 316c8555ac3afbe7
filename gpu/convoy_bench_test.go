package gpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// busy is null with a bus of 55 GB/s that batches take turns on, and a launch that takes 20
// microseconds on its batch's stream.
type busy struct {
	null
	mu   sync.Mutex
	free time.Time // when the bus is
}

func (x *busy) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	bytes, launches := int64(0), 0
	r, err := x.null.Run(ctx, dev, b)
	for i := range b.Commands {
		c := &b.Commands[i]
		for _, p := range c.Pieces {
			bytes += p.Bytes
		}
		switch {
		case c.Op == device.OpMark:
			r.Millis = append(r.Millis, 0)
		case c.Op == device.OpLaunch && strings.HasPrefix(c.Function, "scan"):
			launches++
		}
	}
	now := time.Now()
	x.mu.Lock()
	if x.free.Before(now) {
		x.free = now
	}
	x.free = x.free.Add(time.Duration(bytes * 1000 / 55_000))
	until := x.free
	x.mu.Unlock()
	if end := now.Add(time.Duration(launches)*20*time.Microsecond + 100*time.Microsecond); until.Before(end) {
		until = end
	}
	time.Sleep(time.Until(until))
	return r, err
}

// BenchmarkConvoy has clients ask four kinds of queries of the star schema benchmark's columns at
// scale factor 20, none equal to another, with memory for a quarter of them. It shows how laps fill,
// not what a device does.
func BenchmarkConvoy(b *testing.B) {
	columns := [][]int{{0, 1, 2, 3}, {0, 4, 5, 6}, {0, 7, 5, 6}, {0, 7, 5, 4, 6, 8}}
	const segments = 1831
	words := make([]uint32, 65536*13/32)
	ids := make([]uint64, segments*9)
	for i := range ids {
		ids[i] = newID()
	}
	table := newID()
	var lists [][]program.Segment
	for _, list := range columns {
		of := make([]program.Segment, segments)
		for i := range of {
			of[i] = program.Segment{ID: uint64(i + 1), Rows: 65536}
			for _, c := range list {
				of[i].Columns = append(of[i].Columns, program.SegmentColumn{ID: ids[c*segments+i], Words: words, Min: 0, Max: 8000})
			}
		}
		lists = append(lists, of)
	}
	query := func(client, kind int) *program.Query {
		p := &program.Program{Sink: program.Sink{Place: program.PlaceSingle}}
		q := &program.Query{Program: p, TableID: table, Groups: 1, Segments: lists[kind], Ranges: []program.Range{{Lo: -1 - int64(client), Hi: 9000}}}
		for c := range columns[kind] {
			p.Columns = append(p.Columns, program.Column{})
			p.Nodes = append(p.Nodes, program.Node{Op: program.OpColumn, Index: c})
			p.Sink.Accs = append(p.Sink.Accs, program.Acc{Kind: program.AccSum, Arg: c, Filter: -1})
		}
		p.Steps = []program.Step{{Kind: program.StepRange, Node: 0, Permille: 500}}
		return q
	}
	file := newMemory(b, 1<<12)
	for _, share := range []bool{false, true} {
		for _, clients := range []int{1, 2, 4, 16} {
			b.Run(fmt.Sprintf("share=%v/clients=%d", share, clients), func(b *testing.B) {
				var offsets atomic.Int64
				m := newManager(b, Options{Memory: 9 * segments * 4 * int64(len(words)) / 4, Share: share, File: file.f, Offset: func([]byte) (int64, bool) {
					return offsets.Add(1<<20) % (20 << 30), true
				}}, &busy{})
				var asked atomic.Int64
				var took sync.Map
				var wg sync.WaitGroup
				before := time.Now()
				for client := range clients {
					wg.Go(func() {
						for n := asked.Add(1); n <= int64(b.N); n = asked.Add(1) {
							began := time.Now()
							if _, _, err := m.Run(context.Background(), query(client, int(n)%4), RunOptions{Wait: true, Caller: uint64(client + 1)}); err != nil {
								b.Error(err)
							}
							took.Store(n, time.Since(began))
						}
					})
				}
				wg.Wait()
				var all []time.Duration
				took.Range(func(_, d any) bool { all = append(all, d.(time.Duration)); return true })
				slices.Sort(all)
				b.ReportMetric(float64(b.N)/time.Since(before).Seconds(), "queries/s")
				b.ReportMetric(float64(all[len(all)/2])/1e6, "ms-median")
				b.ReportMetric(float64(m.Status()[0].Rides)/float64(b.N), "rode")
				b.ReportMetric(float64(m.Status()[0].BytesCopied)/float64(b.N)/1e6, "MB-copied")
			})
		}
	}
}
