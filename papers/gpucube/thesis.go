package gpucube

import (
	"context"
	"math"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// Sources of the modules.
const (
	sourceCode   = "#include \"cube_source.cuh\"\n"
	childrenCode = "#include \"cube_children.cuh\"\n"
)

// The launch configuration of the thesis (section 5.2, appendix C): two blocks of 768
// threads for each multiprocessor, children of 1024.
const (
	sourceThreads = 768
	sourceBlocks  = 2
	pendingPool   = 2048 // launches that may be pending, cudaLimitDevRuntimePendingLaunchCount
	tileCells     = 256  // of a block with a queue
)

// cells lists the relevant cells, where the variant has a prefilter, and returns what
// CubeSource.list and count are.
func (q *Query[N]) cells(ctx context.Context, b *batch, v Variant) (list, count device.Pointer, err error) {
	if !v.Prefilter {
		return 0, 0, nil
	}
	m, err := q.module(ctx, "cube_source", sourceCode)
	if err != nil {
		return 0, 0, err
	}
	if list, err = q.reserve("list", int64(q.c.cells)*4); err != nil {
		return 0, 0, err
	}
	var p device.Params
	q.pack(&p, q.maps)
	p.Ptr(list).Ptr(q.head + headCells)
	b.launch(m, "cube_prefilter", q.blocks(8, uint64(q.c.vectors), 8), 256, 0, &p)
	return list, q.head + headCells, nil
}

// packSource packs a CubeSource.
func (q *Query[N]) packSource(ctx context.Context, p *device.Params, b *batch, v Variant, t table) error {
	list, count, err := q.cells(ctx, b, v)
	q.pack(p, q.maps)
	t.pack(p)
	p.Ptr(list).Ptr(count)
	return err
}

// source is section 4.2.
func (q *Query[N]) source(ctx context.Context, b *batch, v Variant, t table) error {
	if v.Saving > SaveShuffle {
		return unavailable("%v", v)
	}
	m, err := q.module(ctx, "cube_source", sourceCode)
	if err != nil {
		return err
	}
	var p device.Params
	if err := q.packSource(ctx, &p, b, v, t); err != nil {
		return err
	}
	kernel := [...]string{"cube_source_none", "cube_source_shared", "cube_source_shuffle"}[v.Saving]
	b.launch(m, kernel, q.blocks(sourceBlocks, uint64(q.c.cells), sourceThreads), sourceThreads, 0, &p)
	return nil
}

// countable reports whether a block's targets can be counted with 32 bits.
func (q *Query[N]) countable() error {
	if mulSaturated(q.fan, 1024) > math.MaxUint32 {
		return unavailable("up to %d targets a cell", q.fan)
	}
	return nil
}

// children is section 4.3.
func (q *Query[N]) children(ctx context.Context, b *batch, v Variant, t table) error {
	if err := q.countable(); err != nil {
		return err
	}
	if v.Saving != SaveNone && v.Saving != SaveStride {
		return unavailable("%v", v)
	}
	m, err := q.module(ctx, "cube_children", childrenCode, "PGACCEL_CDP=1")
	if device.KindOf(err) == device.FaultCompile {
		return unavailable("kernels that launch kernels do not compile here: %v", err)
	}
	if err != nil {
		return err
	}
	grid := q.blocks(sourceBlocks, uint64(q.c.cells), sourceThreads)
	pages := max(1, (pendingPool-1)/grid)
	page := uint64(grid) * sourceThreads
	sums, err := q.reserve("child sums", int64(page)*int64(pages)*4)
	if err != nil {
		return err
	}
	var source device.Params
	if err := q.packSource(ctx, &source, b, v, t); err != nil {
		return err
	}
	common, err := q.reserve("child source", int64(len(source.Bytes())))
	if err != nil {
		return err
	}
	b.add(device.Command{Op: device.OpWrite, Dst: common, Data: source.Bytes()})
	flag := func(is bool) uint32 {
		if is {
			return 1
		}
		return 0
	}
	for first := uint64(0); first*page < uint64(q.c.cells); first += uint64(pages) {
		var p device.Params
		p.Ptr(common).Ptr(sums).U64(first).U32(uint32(pages)).U32(flag(v.Fixed)).U32(flag(v.Saving == SaveStride)).U32(flag(v.Sync))
		b.launch(m, "cube_parent", grid, sourceThreads, 0, &p)
		if v.Sync {
			break // steps launch one another
		}
	}
	return nil
}

// queueParams packs a CubeQueue.
func (q *Query[N]) queueParams(ctx context.Context, b *batch, v Variant, t table, targets uint32, sums, seen device.Pointer) (device.Module, *device.Params, error) {
	m, err := q.module(ctx, "cube_queue", childrenCode)
	if err != nil {
		return 0, nil, err
	}
	p := &device.Params{}
	if err := q.packSource(ctx, p, b, v, t); err != nil {
		return 0, nil, err
	}
	p.Ptr(q.head + headNext).U32(targets).U32(0).Ptr(sums).Ptr(seen)
	return m, p, nil
}

// queue shares targets out within tiles of cells, into the hash table.
func (q *Query[N]) queue(ctx context.Context, b *batch, v Variant, t table) error {
	if err := q.countable(); err != nil {
		return err
	}
	m, p, err := q.queueParams(ctx, b, v, t, 0, 0, 0)
	if err == nil {
		b.launch(m, "cube_queue", q.blocks(4, uint64(q.c.cells), tileCells), tileCells, 0, p)
	}
	return err
}

// queueShared is the static shared memory of cube_queue_dense, and what CUDA keeps of a block's.
const queueShared = 4096

// queueDense does so into tables in shared memory.
func (q *Query[N]) queueDense(ctx context.Context, v Variant) (r cube.Result[N], s Stats, err error) {
	if err := q.countable(); err != nil {
		return r, s, err
	}
	shared := mulSaturated(q.targets, 9)
	if shared > uint64(max(q.c.info.SharedPerBlock-queueShared, 0)) {
		return r, s, unavailable("%d targets need %d bytes of shared memory", q.targets, shared)
	}
	var b batch
	b.mark()
	b.clear(q.head, headBytes)
	sums, seen, err := q.dense(&b, "dense", q.targets, true)
	if err != nil {
		return r, s, err
	}
	m, p, err := q.queueParams(ctx, &b, v, table{slots: 1, functions: 1}, uint32(q.targets), sums, seen)
	if err != nil {
		return r, s, err
	}
	fit := max(1, min(8, q.c.info.SharedPerSM/(int(shared)+queueShared)))
	b.launch(m, "cube_queue_dense", q.blocks(fit, uint64(q.c.cells), tileCells), tileCells, int(shared), p)
	r, err = q.answer(ctx, &b, sums, seen, &s)
	return r, s, err
}

// dense reserves sums and flags of so many places.
func (q *Query[N]) dense(b *batch, name string, places uint64, clear bool) (sums, seen device.Pointer, err error) {
	if places > math.MaxInt32 {
		return 0, 0, unavailable("%d places", places)
	}
	if sums, err = q.reserve(name+" sums", int64(places)*8); err != nil {
		return 0, 0, err
	}
	if seen, err = q.reserve(name+" seen", int64(places)+4); err != nil {
		return 0, 0, err
	}
	if clear {
		b.clear(sums, places*8)
		b.clear(seen, places)
	}
	return sums, seen, nil
}
