package gpucube

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
	"pgaccel/papers/kernels"
)

// Stats says what a run did.
type Stats struct {
	DeviceMillis float64       // clearing of tables, kernels and compaction, without copies of the answer; of the last try
	Launches     int           // by the host, of the last try
	Retries      int           // because a hash table was too small
	Slots        uint64        // of the hash table, if there was one
	Compile      time.Duration // of kernels that the run was the first to need
}

// The words of Query.head.
const (
	headFull   = 0  // a hash table had no slot left
	headCount  = 4  // entries of the answer
	headCells  = 8  // relevant cells
	headNext   = 12 // queue
	headMiddle = 16 // entries of a table that is not the answer
	headBytes  = 64
)

// Run computes a query in a variant: for each area what papers/cube's executors return.
func (u *Cube[N]) Run(ctx context.Context, query cube.Query, v Variant) (results []cube.Result[N], all Stats, err error) {
	for _, area := range query {
		q, err := u.Prepare(ctx, area)
		if err != nil {
			return nil, all, err
		}
		r, s, err := q.Run(ctx, v)
		if err := errors.Join(err, q.Close()); err != nil {
			return nil, all, err
		}
		results = append(results, r)
		all.DeviceMillis += s.DeviceMillis
		all.Launches += s.Launches
		all.Retries += s.Retries
		all.Slots = max(all.Slots, s.Slots)
	}
	return results, all, nil
}

// Run computes the area in a variant. errUnavailable says that the variant cannot.
func (q *Query[N]) Run(ctx context.Context, v Variant) (cube.Result[N], Stats, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.runLocked(ctx, v)
}

// runLocked is Run for who has q.mu.
func (q *Query[N]) runLocked(ctx context.Context, v Variant) (r cube.Result[N], s Stats, err error) {
	q.compile = 0
	r, s, err = q.runVariant(ctx, v)
	s.Compile = q.compile
	return r, s, err
}

func (q *Query[N]) runVariant(ctx context.Context, v Variant) (cube.Result[N], Stats, error) {
	if q.empty {
		return cube.Result[N]{}, Stats{}, nil
	}
	if v.Functions > math.MaxInt32 {
		return cube.Result[N]{}, Stats{}, unavailable("%d hash functions", v.Functions)
	}
	v.Functions = max(v.Functions, 1)
	switch v.Method {
	case Source, Children, Queue:
		return q.hashed(ctx, v)
	case ClassesHash:
		v.Functions = 1
		return q.hashed(ctx, v)
	case QueueDense:
		return q.queueDense(ctx, v)
	}
	return q.scanClasses(ctx, v)
}

// module compiles a source with the kernels, once for a cube.
func (q *Query[N]) module(ctx context.Context, name, code string, defines ...string) (device.Module, error) {
	begin := time.Now()
	m, err := q.c.module(ctx, name, code, defines...)
	q.compile += time.Since(begin)
	return m, err
}

func (u *Cube[N]) module(ctx context.Context, name, code string, defines ...string) (device.Module, error) {
	key := name + "\x00" + code
	if m, ok := u.modules.Load(key); ok {
		switch m := m.(type) {
		case device.Module:
			return m, nil
		case error:
			return 0, m
		}
	}
	defines = append([]string{"CUBE_DIMS=" + strconv.Itoa(len(u.dims))}, defines...)
	m, err := u.mem.ex.Compile(ctx, u.mem.dev, device.Source{Name: name, Code: code, Headers: kernels.Headers(), Defines: defines})
	switch {
	case err == nil:
		u.modules.Store(key, m)
	case device.KindOf(err) == device.FaultCompile:
		u.modules.Store(key, err)
	}
	return m, err
}

// batch collects a run's commands.
type batch struct {
	commands []device.Command
	reads    int
	n        int // launches
}

func (b *batch) add(c device.Command) { b.commands = append(b.commands, c) }

func (b *batch) mark() { b.add(device.Command{Op: device.OpMark}) }

func (b *batch) clear(at device.Pointer, bytes uint64) {
	b.add(device.Command{Op: device.OpFill, Dst: at, Bytes: (bytes + 3) / 4 * 4})
}

// read returns the position in Reply.Data.
func (b *batch) read(at device.Pointer, bytes uint64) int {
	b.add(device.Command{Op: device.OpRead, Src: at, Bytes: bytes})
	b.reads++
	return b.reads - 1
}

func (b *batch) launch(m device.Module, kernel string, grid, block int, shared int, p *device.Params) {
	b.n++
	b.add(device.Command{Op: device.OpLaunch, Module: m, Function: kernel, Grid: [3]uint32{uint32(grid), 1, 1},
		Block: [3]uint32{uint32(block), 1, 1}, Shared: uint32(shared), Params: p.Bytes()})
}

// run executes the batch; marks stand around what counts as device time.
func (q *Query[N]) run(ctx context.Context, b *batch, s *Stats) (*device.Reply, error) {
	r, err := q.mem.run(ctx, b.commands)
	if err != nil {
		return nil, err
	}
	s.Launches = b.n
	s.DeviceMillis = 0
	for _, ms := range r.Millis {
		s.DeviceMillis += ms
	}
	return r, nil
}

// column packs a CubeColumn.
func (c column) pack(p *device.Params) { p.Ptr(c.at).U32(uint32(c.width)).U32(0) }

// pack packs a CubeQuery with the lists of maps.
func (q *Query[N]) pack(p *device.Params, maps []mapPointers) {
	for _, d := range q.order {
		dim, m := &q.c.dims[d], &maps[d]
		dim.pack(p)
		p.Ptr(m.start).Ptr(m.number).Ptr(m.weight).Ptr(m.before).Ptr(dim.zones)
	}
	q.c.low.pack(p)
	q.c.high.pack(p)
	p.I64(q.c.base).U64(uint64(q.c.cells))
}

// table is a hash table on the device.
type table struct {
	keys, sums, full device.Pointer
	slots            uint64
	functions        int
}

func (t table) pack(p *device.Params) {
	p.Ptr(t.keys).Ptr(t.sums).Ptr(t.full).U64(t.slots - 1).U32(uint32(t.functions)).U32(0)
}

// newTable reserves a table under a name and clears it in the batch.
func (q *Query[N]) newTable(b *batch, name string, slots uint64, functions int) (table, error) {
	keys, err := q.reserve(name+" keys", int64(slots)*8)
	if err != nil {
		return table{}, err
	}
	sums, err := q.reserve(name+" sums", int64(slots)*8)
	b.clear(keys, slots*8)
	b.clear(sums, slots*8)
	return table{keys, sums, q.head + headFull, slots, functions}, err
}

// Bounds of the tables of a first try: for each hash function, and in all.
const (
	firstSlots = 1 << 20
	mostSlots  = 1 << 27
)

// slotsFor returns a table's size for so many keys.
func slotsFor(keys uint64) uint64 { return max(1024, uint64(1)<<bits.Len64(min(keys, 1<<40)*2-1)) }

// blocks returns a grid of so many blocks for each multiprocessor, no more than there is
// work for.
func (q *Query[N]) blocks(each int, work, perBlock uint64) int {
	return int(max(1, min(uint64(max(q.c.info.SMs, 1)*each), (work+perBlock-1)/perBlock)))
}

// guess is how many entries of an answer are read without asking first how many there are.
const guess = 8192

// tableKey says which runs of a query need tables of the same size.
type tableKey struct {
	functions int
	classes   bool
}

// hashed runs the variants with a hash table of targets, with larger ones until it fits.
func (q *Query[N]) hashed(ctx context.Context, v Variant) (cube.Result[N], Stats, error) {
	functions := uint64(v.Functions)
	if v.Method == Queue {
		functions = 1
	}
	expected := min(q.targets, mulSaturated(uint64(q.c.cells), q.fan))
	if mulSaturated(q.targets, functions) > math.MaxInt64 || v.Method == ClassesHash && q.classes.places > math.MaxInt64 {
		return cube.Result[N]{}, Stats{}, unavailable("%d targets, %d hash functions", q.targets, functions)
	}
	slots := min(slotsFor(mulSaturated(expected, functions)), max(min(mulSaturated(q.firstSlots, functions), mostSlots), slotsFor(functions)))
	v.Functions = int(functions)
	key := tableKey{v.Functions, v.Method == ClassesHash}
	slots = max(slots, q.grown[key])
	var s Stats
	for {
		s.Slots = slots
		r, full, err := q.hashedOnce(ctx, v, slots, expected, &s)
		if err != nil || !full {
			q.grown[key] = slots
			return r, s, err
		}
		slots *= 8
		s.Retries++
	}
}

// hashedOnce is one try of hashed with tables of a size.
func (q *Query[N]) hashedOnce(ctx context.Context, v Variant, slots, expected uint64, s *Stats) (r cube.Result[N], full bool, err error) {
	var b batch
	b.mark()
	b.clear(q.head, headBytes)
	t, err := q.newTable(&b, "table", slots, v.Functions)
	if err != nil {
		return r, false, err
	}
	switch v.Method {
	case Source:
		err = q.source(ctx, &b, v, t)
	case Children:
		err = q.children(ctx, &b, v, t)
	case Queue:
		err = q.queue(ctx, &b, v, t)
	case ClassesHash:
		t, err = q.classHash(ctx, &b, t)
	}
	if err != nil {
		return r, false, err
	}
	m, err := q.module(ctx, "cube_source", sourceCode)
	if err != nil {
		return r, false, err
	}
	if v.Functions > 1 {
		to, err := q.newTable(&b, "compact", max(1024, slots>>(bits.Len64(uint64(v.Functions))-1)), 1)
		if err != nil {
			return r, false, err
		}
		var p device.Params
		t.pack(&p)
		to.pack(&p)
		b.launch(m, "cube_merge", q.blocks(8, slots, 256), 256, 0, &p)
		t = to
	}
	numbers, sums, most, err := q.list(&b, m, t, expected, headCount)
	if err != nil {
		return r, false, err
	}
	b.mark()
	head := b.read(q.head, headBytes)
	first := min(most, guess)
	n, v8 := b.read(numbers, first*8), b.read(sums, first*8)
	reply, err := q.run(ctx, &b, s)
	if v.Method == Children && device.KindOf(err) == device.FaultLaunch {
		return r, false, unavailable("kernels that launch kernels do not start here: %v", err)
	}
	if err != nil {
		return r, false, err
	}
	switch full := binary.LittleEndian.Uint32(reply.Data[head][headFull:]); {
	case full > 1:
		return r, false, unavailable("a kernel's launch of a kernel failed: CUDA error %d", full>>1)
	case full != 0:
		return r, true, nil
	}
	count := uint64(binary.LittleEndian.Uint32(reply.Data[head][headCount:]))
	r, err = q.entries(ctx, reply.Data[n], reply.Data[v8], count, numbers, sums)
	if err != nil {
		return r, false, err
	}
	sortResult(&r)
	return r, false, nil
}

// list lists a table's entries on the device; their number goes to a word of head.
func (q *Query[N]) list(b *batch, m device.Module, t table, expected uint64, count device.Pointer) (numbers, sums device.Pointer, most uint64, err error) {
	most = min(t.slots, expected, math.MaxUint32)
	name := strconv.Itoa(int(count))
	if numbers, err = q.reserve("numbers "+name, int64(most)*8); err != nil {
		return 0, 0, 0, err
	}
	if sums, err = q.reserve("sums "+name, int64(most)*8); err != nil {
		return 0, 0, 0, err
	}
	var p device.Params
	t.pack(&p)
	p.Ptr(numbers).Ptr(sums).Ptr(q.head + count).U32(uint32(most)).U32(0)
	b.launch(m, "cube_list", q.blocks(8, t.slots, 256), 256, 0, &p)
	return numbers, sums, most, nil
}

// entries makes a result of count entries; those that have not come yet are read.
func (q *Query[N]) entries(ctx context.Context, numbers, sums []byte, count uint64, numbersAt, sumsAt device.Pointer) (cube.Result[N], error) {
	if have := uint64(len(numbers)) / 8; count > have {
		var b batch
		b.read(numbersAt+device.Pointer(have*8), (count-have)*8)
		b.read(sumsAt+device.Pointer(have*8), (count-have)*8)
		more, err := q.mem.run(ctx, b.commands)
		if err != nil {
			return cube.Result[N]{}, err
		}
		numbers, sums = slices.Concat(numbers, more.Data[0]), slices.Concat(sums, more.Data[1])
	}
	r := cube.Result[N]{Targets: make([]uint64, count), Values: make([]N, count)}
	for i := range r.Targets {
		r.Targets[i] = q.number(binary.LittleEndian.Uint64(numbers[8*i:]))
		r.Values[i] = unfixed[N](int64(binary.LittleEndian.Uint64(sums[8*i:])), q.shift)
	}
	return r, nil
}

// sortResult sorts by target.
func sortResult[N cube.Number](r *cube.Result[N]) {
	order := make([]int, len(r.Targets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(r.Targets[a], r.Targets[b]) })
	out := cube.Result[N]{Targets: make([]uint64, len(order)), Values: make([]N, len(order))}
	for i, o := range order {
		out.Targets[i], out.Values[i] = r.Targets[o], r.Values[o]
	}
	*r = out
}
