package rowout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"pgaccel/gpu/device"
	"pgaccel/papers/kernels"
)

// Method is a way to write results.
type Method struct {
	Name   string
	Pairs  bool // pairs in any order; else ids by entry
	stages []stage
}

// stage is a part of a method that is timed: kernels in order.
type stage struct {
	name    string
	kernels []string
}

// clearStatus is a fill among a stage's kernels.
const clearStatus = "clear"

// The names of stages.
const (
	stageFilter    = "filter"
	stageLinearise = "linearise"
	stageSums      = "sums"
	stageDecode    = "decode"
)

var sums = stage{stageSums, []string{"rowout_sums", "rowout_sum_sums", "rowout_positions"}}

// methods returns all of them: the paper's first.
func methods() []Method {
	return []Method{
		{"bitmap", false, []stage{{stageFilter, []string{"rowout_filter"}}, {stageLinearise, []string{"rowout_linearise"}}, sums, {stageDecode, []string{"rowout_decode"}}}},
		{"ballot", false, []stage{{stageFilter, []string{"rowout_ballot_bitmap"}}, sums, {stageDecode, []string{"rowout_decode"}}}},
		{"recount", false, []stage{{stageFilter, []string{"rowout_ballot_count"}}, sums, {stageDecode, []string{"rowout_ballot_write"}}}},
		{"fused", false, []stage{{stageFilter, []string{clearStatus, "rowout_fused"}}}},
		{"atomic row", true, []stage{{stageFilter, []string{"rowout_atomic_row"}}}},
		{"atomic warp", true, []stage{{stageFilter, []string{"rowout_atomic_warp"}}}},
	}
}

// Source is the module of all methods.
func Source() device.Source {
	return device.Source{Name: "rowout", Code: "#include \"rowout.cuh\"\n", Headers: kernels.Headers()}
}

const (
	blockEntries = 128 // ROWOUT_THREADS
	scanThreads  = 1024
)

// batch is a workload in a device's memory, with room for results.
type batch struct {
	ex      device.Executor
	dev     int
	module  device.Module
	w       *workload
	results uint64 // there is room for
	tasks   int
	memory  []device.Pointer

	counts, positions, out, pairs, result, status device.Pointer
	params                                        []byte // but n and what follows
}

// upload copies a workload to a device, with room for so many results, which is less than
// 2^32.
func upload(ctx context.Context, ex device.Executor, dev int, w *workload, results uint64) (_ *batch, err error) {
	if results > math.MaxUint32 {
		return nil, fmt.Errorf("rowout: %d results", results)
	}
	b := &batch{ex: ex, dev: dev, w: w, results: results}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Free())
		}
	}()
	if b.module, err = ex.Compile(ctx, dev, Source()); err != nil {
		return nil, err
	}
	var cells, tasks, points, ids, entries, queries []byte
	le := binary.LittleEndian
	for i, c := range w.Cells {
		for _, v := range []int{c.FirstPoint, c.Points, c.FirstEntry, c.Entries} {
			cells = le.AppendUint32(cells, uint32(v))
		}
		cells = le.AppendUint64(cells, uint64(c.firstWord))
		cells = le.AppendUint32(le.AppendUint32(cells, uint32(c.Lines())), uint32(c.stride()))
		for first := 0; first < c.Entries; first += blockEntries {
			tasks = le.AppendUint32(le.AppendUint32(tasks, uint32(i)), uint32(first))
			b.tasks++
		}
	}
	for i, p := range w.Points {
		points = le.AppendUint32(le.AppendUint32(points, uint32(p.X)), uint32(p.Y))
		ids = le.AppendUint32(ids, w.IDs[i])
	}
	for _, e := range w.Entries {
		entries = le.AppendUint32(entries, e)
	}
	for _, q := range w.Queries {
		for _, v := range []int32{q.X0, q.Y0, q.X1, q.Y1} {
			queries = le.AppendUint32(queries, uint32(v))
		}
	}
	params := new(device.Params)
	var commands []device.Command
	for _, data := range [][]byte{cells, tasks, points, ids, entries, queries} {
		p, err := b.alloc(int64(len(data)))
		if err != nil {
			return nil, err
		}
		if len(data) > 0 {
			commands = append(commands, device.Command{Op: device.OpWrite, Dst: p, Data: data})
		}
		params.Ptr(p)
	}
	n := int64(len(w.Entries))
	for _, room := range []struct {
		to    *device.Pointer
		bytes int64
	}{{nil, 4 * w.words}, {nil, 4 * w.words}, {&b.counts, 4 * n}, {&b.positions, 4 * n}, {nil, 4 * (n/scanThreads + 1)},
		{&b.out, 4 * int64(results)}, {&b.pairs, 8 * int64(results)}, {&b.result, 8}, {&b.status, 8 * int64(b.tasks)}} {
		p, err := b.alloc(room.bytes)
		if err != nil {
			return nil, err
		}
		if room.to != nil {
			*room.to = p
		}
		params.Ptr(p)
	}
	b.params = params.Bytes()
	_, err = ex.Run(ctx, dev, &device.Batch{Commands: commands})
	return b, err
}

func (b *batch) alloc(bytes int64) (device.Pointer, error) {
	p, err := b.ex.Alloc(b.dev, max(bytes, 4))
	if err == nil {
		b.memory = append(b.memory, p)
	}
	return p, err
}

// Free gives the memory back.
func (b *batch) Free() error {
	var err error
	for _, p := range b.memory {
		err = errors.Join(err, b.ex.Free(b.dev, p))
	}
	b.memory = nil
	return err
}

// launch returns the command for a kernel; n is the parameter's.
func (b *batch) launch(kernel string, blocks, threads int, n uint64) device.Command {
	p := binary.LittleEndian.AppendUint64(b.params[:len(b.params):len(b.params)], n)
	return device.Command{Op: device.OpLaunch, Module: b.module, Function: kernel, Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}, Params: p}
}

// Commands returns what computes the results by a method, each stage between two marks.
// There are none where there are no entries.
func (b *batch) Commands(m Method) []device.Command {
	n := len(b.w.Entries)
	if n == 0 {
		return nil
	}
	chunks := (n + scanThreads - 1) / scanThreads
	commands := []device.Command{{Op: device.OpFill, Dst: b.result, Bytes: 8}, {Op: device.OpMark}}
	for _, s := range m.stages {
		for _, k := range s.kernels {
			blocks, threads := b.tasks, blockEntries
			switch k {
			case clearStatus:
				commands = append(commands, device.Command{Op: device.OpFill, Dst: b.status, Bytes: 8 * uint64(b.tasks)})
				continue
			case "rowout_sums", "rowout_positions":
				blocks, threads = chunks, scanThreads
			case "rowout_sum_sums":
				blocks, threads = 1, scanThreads
			}
			commands = append(commands, b.launch(k, blocks, threads, uint64(n)))
		}
		commands = append(commands, device.Command{Op: device.OpMark})
	}
	return commands
}

// forget returns the commands that overwrite what a method has left.
func (b *batch) forget() (c []device.Command) {
	n := uint64(len(b.w.Entries))
	for _, r := range []struct {
		at    device.Pointer
		bytes uint64
	}{{b.counts, 4 * n}, {b.positions, 4 * n}, {b.out, 4 * b.results}, {b.pairs, 8 * b.results}} {
		c = append(c, device.Command{Op: device.OpFill, Dst: r.at, Bytes: r.bytes, Value: 0x5a5a5a5a})
	}
	return c
}

// check runs a method and compares the number of its results and their sum.
func (b *batch) check(ctx context.Context, m Method, results, sum uint64) error {
	commands := b.Commands(m)
	if commands == nil || results > b.results {
		return fmt.Errorf("%d results, with room for %d", results, b.results)
	}
	n := len(b.w.Entries)
	commands = append(b.forget(), commands...)
	if m.Pairs {
		commands = append(commands, device.Command{Op: device.OpRead, Src: b.result, Bytes: 8}, device.Command{Op: device.OpFill, Dst: b.result, Bytes: 8},
			b.launch("rowout_check_pairs", 1024, blockEntries, results))
	} else {
		commands = append(commands, device.Command{Op: device.OpRead, Src: b.counts + device.Pointer(4*(n-1)), Bytes: 4}, device.Command{Op: device.OpRead, Src: b.positions + device.Pointer(4*(n-1)), Bytes: 4},
			device.Command{Op: device.OpFill, Dst: b.result, Bytes: 8}, b.launch("rowout_check_lists", (n+3)/4, blockEntries, uint64(n)))
	}
	reply, err := b.ex.Run(ctx, b.dev, &device.Batch{Commands: append(commands, device.Command{Op: device.OpRead, Src: b.result, Bytes: 8})})
	if err != nil {
		return err
	}
	var got uint64
	le := binary.LittleEndian
	if m.Pairs {
		got = le.Uint64(reply.Data[0])
	} else {
		got = uint64(le.Uint32(reply.Data[0])) + uint64(le.Uint32(reply.Data[1]))
	}
	if s := le.Uint64(reply.Data[len(reply.Data)-1]); got != results || s != sum {
		return fmt.Errorf("%d results with sum %#x, and there are %d with %#x", got, s, results, sum)
	}
	return nil
}
