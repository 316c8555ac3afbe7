package gpucube

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// classesCode is the module of what follows a scan.
const classesCode = "#include \"cube_classes.cuh\"\n"

// Limits of tensors.
const (
	maxTensor  = 1 << 26 // places
	chunk      = 4096    // places that a block lists
	directRead = 4096    // target cells that are read as they are, filled or not
)

// prepared returns the scan of a method, generated once.
func (q *Query[N]) prepared(method Method) (*scan, error) {
	if s := q.scans[method]; s != nil {
		return s, nil
	}
	s, err := q.generate(method)
	if err == nil {
		q.scans[method] = s
	}
	return s, err
}

// scanClasses runs a generated scan and climbs from classes to targets.
func (q *Query[N]) scanClasses(ctx context.Context, v Variant) (r cube.Result[N], stats Stats, err error) {
	s, err := q.prepared(v.Method)
	if err != nil {
		return r, stats, err
	}
	steps, err := q.steps()
	if err != nil {
		return r, stats, err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.code)) // a hash takes all
	m, err := q.module(ctx, fmt.Sprintf("cube_scan_%016x", h.Sum64()), s.code)
	if err != nil {
		return r, stats, err
	}
	after, err := q.module(ctx, "cube_classes", classesCode)
	if err != nil {
		return r, stats, err
	}
	if s.image == 0 {
		if s.image, err = q.mem.write(s.tables); err != nil {
			return r, stats, err
		}
	}
	var b batch
	b.mark()
	b.clear(q.head, headBytes)
	sums, seen, err := q.launchScan(&b, s, m, after)
	if err != nil {
		return r, stats, err
	}
	// Tensors alternate between two buffers, which are not to move while the batch grows.
	var room [2]uint64
	for i, step := range steps {
		room[i%2] = max(room[i%2], step.places)
	}
	for i, step := range steps {
		outSums, outSeen, err := q.dense(&b, fmt.Sprint("tensor ", i%2), room[i%2], false)
		if err != nil {
			return r, stats, err
		}
		if err := q.contract(&b, after, step, [4]device.Pointer{sums, seen, outSums, outSeen}); err != nil {
			return r, stats, err
		}
		sums, seen = outSums, outSeen
	}
	r, err = q.answer(ctx, &b, sums, seen, &stats)
	return r, stats, err
}

// launchScan appends the scan, and the sum of its blocks' tensors.
func (q *Query[N]) launchScan(b *batch, s *scan, m, after device.Module) (sums, seen device.Pointer, err error) {
	blocks := q.blocks(s.blocks, uint64(q.c.vectors), uint64(s.threads/lanes))
	if sums, seen, err = q.dense(b, "classes", s.places, s.inGlobal); err != nil {
		return 0, 0, err
	}
	partSums, partSeen := sums, seen
	if !s.inGlobal {
		if partSums, partSeen, err = q.dense(b, "parts", s.places*uint64(blocks), false); err != nil {
			return 0, 0, err
		}
	}
	var p device.Params
	for _, d := range s.columns {
		p.Ptr(q.c.dims[d].at)
	}
	p.Ptr(q.c.low.at).Ptr(q.c.high.at)
	for _, d := range s.steady {
		p.Ptr(q.c.dims[d].zones)
	}
	if len(s.steady) == 0 {
		p.Ptr(0)
	}
	p.Ptr(s.image).Ptr(partSums).Ptr(partSeen).U64(uint64(q.c.cells)).I64(q.c.base)
	b.launch(m, "cube_scan", blocks, s.threads, s.shared, &p)
	if !s.inGlobal {
		var p device.Params
		p.Ptr(partSums).Ptr(partSeen).Ptr(sums).Ptr(seen).U32(uint32(s.places)).U32(uint32(blocks))
		b.launch(after, "cube_reduce", int(s.places+31)/32, 1024, 0, &p)
	}
	return sums, seen, nil
}

// step is the multiplication of one axis of the tensor.
type step struct {
	dim    int
	inner  uint64 // places of the axes after it
	places uint64 // of the result
}

// steps says in which order the axes are turned from classes into targets: those first that
// shrink the tensor most. Axes that are targets already have no step.
func (q *Query[N]) steps() ([]step, error) {
	shape := make([]uint64, len(q.dims))
	var left []int
	size := uint64(1)
	for d := range q.dims {
		k := &q.classes.dims[d]
		shape[d] = uint64(k.count())
		size = mulSaturated(size, shape[d])
		if !k.same() {
			left = append(left, d)
		}
	}
	var out []step
	for len(left) > 0 {
		best := 0
		for i, d := range left {
			if b := left[best]; q.dims[d].radix*shape[b] < q.dims[b].radix*shape[d] {
				best = i
			}
		}
		d := left[best]
		left = append(left[:best], left[best+1:]...)
		size = mulSaturated(size/shape[d], q.dims[d].radix)
		shape[d] = q.dims[d].radix
		if size > maxTensor {
			return nil, unavailable("a tensor of %d places on the way to target cells", size)
		}
		inner := uint64(1)
		for _, n := range shape[d+1:] {
			inner *= n
		}
		out = append(out, step{d, inner, size})
	}
	return out, nil
}

// same reports whether classes are targets, in their order, with weight 1.
func (k *classDim) same() bool {
	if uint64(k.count()) != k.lists.radix || len(k.lists.digit) != k.count() {
		return false
	}
	for i, digit := range k.lists.digit {
		if int(digit) != i || k.lists.weight[i] != 1 || int(k.lists.start[i]) != i {
			return false
		}
	}
	return true
}

// contract appends a step: from sums and flags to sums and flags.
func (q *Query[N]) contract(b *batch, m device.Module, s step, tensors [4]device.Pointer) (err error) {
	k := &q.classes.dims[s.dim]
	matrix, made := q.matrices[s.dim]
	if !made {
		starts, classOf, weights := k.transposed()
		var m image
		at := [3]int64{m.u32(starts), m.u32(classOf), m.i64(weights)}
		base, err := q.mem.write(m.b)
		if err != nil {
			return err
		}
		for i, a := range at {
			matrix[i] = base + device.Pointer(a)
		}
		q.matrices[s.dim] = matrix
	}
	var p device.Params
	for _, at := range append(tensors[:], matrix[:]...) {
		p.Ptr(at)
	}
	p.U32(uint32(k.count())).U32(uint32(k.lists.radix)).U32(uint32(s.inner)).U32(uint32(s.places))
	b.launch(m, "cube_contract", q.blocks(8, s.places, 32), 256, 0, &p)
	return nil
}

// transposed lists the classes of each target.
func (k *classDim) transposed() (start, class []uint32, weight []int64) {
	start = make([]uint32, k.lists.radix+1)
	for _, t := range k.lists.digit {
		start[t+1]++
	}
	for t := range k.lists.radix {
		start[t+1] += start[t]
	}
	class, weight = make([]uint32, len(k.lists.digit)), make([]int64, len(k.lists.digit))
	at := append([]uint32(nil), start...)
	for c := range k.count() {
		for i := k.lists.start[c]; i < k.lists.start[c+1]; i++ {
			t := k.lists.digit[i]
			class[at[t]], weight[at[t]] = uint32(c), k.lists.weight[i]
			at[t]++
		}
	}
	return start, class, weight
}

// answer runs the batch and returns the filled target cells of a tensor of all of them.
func (q *Query[N]) answer(ctx context.Context, b *batch, sums, seen device.Pointer, s *Stats) (r cube.Result[N], err error) {
	if q.targets <= directRead {
		b.mark()
		x, y := b.read(sums, q.targets*8), b.read(seen, q.targets)
		reply, err := q.run(ctx, b, s)
		if err != nil {
			return r, err
		}
		for t, is := range reply.Data[y] {
			if is != 0 {
				r.Targets = append(r.Targets, q.number(uint64(t)))
				r.Values = append(r.Values, unfixed[N](int64(binary.LittleEndian.Uint64(reply.Data[x][8*t:])), q.shift))
			}
		}
		return r, nil
	}
	m, err := q.module(ctx, "cube_classes", classesCode)
	if err != nil {
		return r, err
	}
	chunks := int((q.targets + chunk - 1) / chunk)
	most := q.targets
	counts, err := q.reserve("counts", int64(chunks)*4)
	if err != nil {
		return r, err
	}
	numbers, err := q.reserve("numbers dense", int64(most)*8)
	if err != nil {
		return r, err
	}
	listed, err := q.reserve("sums dense", int64(most)*8)
	if err != nil {
		return r, err
	}
	var p device.Params
	p.Ptr(sums).Ptr(seen).Ptr(counts).Ptr(numbers).Ptr(listed).Ptr(q.head + headCount).U32(uint32(q.targets)).U32(uint32(most))
	b.launch(m, "cube_dense_count", chunks, 512, 0, &p)
	b.launch(m, "cube_dense_list", chunks, 512, 0, &p)
	b.mark()
	head := b.read(q.head, headBytes)
	first := min(most, guess)
	x, y := b.read(numbers, first*8), b.read(listed, first*8)
	reply, err := q.run(ctx, b, s)
	if err != nil {
		return r, err
	}
	count := uint64(binary.LittleEndian.Uint32(reply.Data[head][headCount:]))
	return q.entries(ctx, reply.Data[x], reply.Data[y], count, numbers, listed)
}

// classHash adds cells up by combination of classes in a hash table, lists it, and hands its
// entries to their targets. It returns the table of those.
func (q *Query[N]) classHash(ctx context.Context, b *batch, targets table) (table, error) {
	k := q.classes
	m, err := q.module(ctx, "cube_source", sourceCode)
	if err != nil {
		return table{}, err
	}
	after, err := q.module(ctx, "cube_classes", classesCode)
	if err != nil {
		return table{}, err
	}
	strides := make([]uint64, len(k.dims))
	stride := uint64(1)
	for i := len(q.order) - 1; i >= 0; i-- { // as the kernel takes numbers apart
		d := q.order[i]
		strides[d] = stride
		stride *= uint64(k.dims[d].count())
	}
	if q.classAt == nil {
		toClass := make([]targetLists, len(k.dims))
		lists := make([]targetLists, len(k.dims))
		for d := range k.dims {
			c := &k.dims[d]
			t := targetLists{start: []uint32{0}, stride: strides[d]}
			for e, class := range c.of {
				if class >= 0 {
					t.digit = append(t.digit, uint32(class))
					t.weight = append(t.weight, c.factor[e])
				}
				t.start = append(t.start, uint32(len(t.digit)))
			}
			toClass[d], lists[d] = t, c.lists
		}
		to, err := q.putMaps(toClass)
		if err != nil {
			return table{}, err
		}
		from, err := q.putMaps(lists)
		if err != nil {
			return table{}, err
		}
		q.classAt = append(to, from...)
	}
	slots := min(slotsFor(min(k.places, uint64(q.c.cells))), targets.slots)
	t, err := q.newTable(b, "class", slots, 1)
	if err != nil {
		return table{}, err
	}
	var p device.Params
	q.pack(&p, q.classAt[:len(k.dims)])
	t.pack(&p)
	p.Ptr(0).Ptr(0)
	b.launch(m, "cube_source_shuffle", q.blocks(sourceBlocks, uint64(q.c.cells), sourceThreads), sourceThreads, 0, &p)
	numbers, sums, most, err := q.list(b, m, t, min(k.places, uint64(q.c.cells)), headMiddle)
	if err != nil {
		return table{}, err
	}
	var x device.Params
	q.pack(&x, q.classAt[len(k.dims):])
	for _, d := range q.order {
		x.U64(strides[d])
	}
	targets.pack(&x)
	x.Ptr(numbers).Ptr(sums).Ptr(q.head + headMiddle).Ptr(q.head + headNext)
	b.launch(after, "cube_expand", q.blocks(8, most, 8), 256, 0, &x)
	return targets, nil
}
