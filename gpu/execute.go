package gpu

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
	"pgaccel/internal/bulk"
)

// batchBytes is about as much as chunks of one batch copy, some 20 ms: that a query is given up
// is seen between two batches.
const batchBytes = 1 << 30

// copySMs is how many multiprocessors kernels leave free while copies run beside them: a copy of
// many pieces is a kernel of 4 blocks, of which two may run where chunks meet, and a scan's blocks
// stay on their multiprocessors to its end, with all of its registers.
const copySMs = 8

// besideCopies is the number of multiprocessors for kernels that run beside copies: at least
// half of all.
func besideCopies(sms int) int { return max(sms-copySMs, (sms+1)/2) }

// errAgain says that something another query was to bring did not come.
var errAgain = errors.New("another query did not bring its columns")

// execute runs what acquire prepared: one batch, where all is there or little is to come.
func (j *job) execute(stream int) (*program.Result, error) {
	if len(j.chunks) > 1 || len(j.waits) > 0 && j.own != nil {
		// Others may wait for what this brings; to wait for theirs first could be a circle.
		if err := j.bringOwn(stream); err != nil {
			return nil, err
		}
		j.direct, j.chunks = nil, nil
	}
	if err := j.arrived(); err != nil {
		return nil, err
	}

	b := batch{j: j, stream: stream, commands: make([]device.Command, 0, 32)}
	b.commands = j.copies(b.commands, j.direct) // before the bus is busy with what they wait behind
	if i := slices.IndexFunc(j.parts, func(p *part) bool { return len(p.streams) > 0 }); i >= 0 && len(j.chunks) == 0 {
		b.ahead(j.parts[i].streams)
	}
	for _, c := range j.chunks {
		b.commands = append(b.commands, c.commands()...)
	}
	b.mark(true)
	for _, c := range j.chunks {
		b.commands = j.chunkTranscode(b.commands, c)
		b.free(c) // for what is streamed
	}
	// Lookups that are built note their faults where the query does, which is the last: nothing
	// is to be read of them. All is cleared at once.
	sms := j.d.info.SMs
	var regions []program.Region
	query := j.parts[len(j.parts)-1]
	for _, p := range j.parts {
		if p != query {
			p.b.Faults = query.shape.g.Head(query.q, &query.b)
		}
		regions = p.shape.g.Regions(regions, p.q, &p.b)
		if p.narrows != nil {
			regions = append(regions, program.Region{At: p.narrows.Alive, Bytes: 16})
		}
	}
	b.commands = program.Clear(b.commands, j.lanes, j.appendHashRegions(regions), sms)
	b.commands = j.appendStringScans(b.commands)
	b.commands = j.appendHashes(b.commands, sms)
	for _, p := range j.parts {
		b.commands = p.narrow(b.commands)
		switch {
		case len(p.streams) == 0 && b.begun > 0:
			b.scan(p, p.resident, sms)
			continue
		case len(p.streams) == 0:
			b.commands = p.scan(b.commands, p.resident, sms)
			continue
		}
		b.mark(false)
		if err := b.pipeline(p.streams, p, []*part{p}); err != nil {
			return nil, err
		}
		b.mark(true)
	}
	b.commands = query.shape.g.Finish(b.commands, query.q, query.module, &query.b, sms)
	b.readers = append(b.readers, query)
	if err := b.run(); err != nil {
		return nil, err
	}
	j.settle(&j.own, nil)
	j.settle(&j.later, nil)
	r, err := j.result(stream, query)
	bulk.Done(b.memory)
	return r, err
}

// bringOwn brings what the job does, for others too.
func (j *job) bringOwn(stream int) error {
	b := batch{j: j, stream: stream, commands: j.copies(nil, j.direct)}
	err := b.bring(j.chunks)
	if err == nil {
		j.settle(&j.own, nil)
	}
	return err
}

// arrived waits for what other queries bring.
func (j *job) arrived() error {
	if len(j.waits) > 0 {
		j.spent(&j.stats.Times.Prepare)
		defer j.spent(&j.stats.Times.Wait)
	}
	for _, l := range j.waits {
		select {
		case <-l.done:
		case <-j.ctx.Done():
			return j.ctx.Err()
		}
		if l.err != nil {
			var fault *device.Fault
			if errors.As(l.err, &fault) {
				return l.err
			}
			return errAgain
		}
	}
	return nil
}

// result makes the query's result of what was read.
func (j *job) result(stream int, query *part) (*program.Result, error) {
	g := query.shape.g
	var rest []byte
	if c, more := g.Rest(query.q, &query.b, query.data); more {
		j.spent(&j.stats.Times.Result)
		reply, err := j.send(stream, []device.Command{c}, nil)
		if err != nil {
			return nil, err
		}
		rest = reply.Data[0]
		defer bulk.Done(reply.Memory)
	}
	r, err := g.Parse(query.q, query.data, rest)
	if err == nil && !r.Fault {
		j.settle(&j.built, nil)
	}
	return r, err
}

// scan appends the computing of segments.
func (p *part) scan(c []device.Command, list []uint32, sms int) []device.Command {
	for len(list) > 0 {
		n := min(len(list), math.MaxUint16)
		if p.b.Alive != 0 { // which has the vectors of all of them
			n = len(list)
		}
		c = p.shape.g.ScanSegments(c, p.q, p.module, &p.b, list[:n], sms)
		list = list[n:]
	}
	return c
}

// batch collects commands for one request.
type batch struct {
	j        *job
	stream   int
	commands []device.Command
	marks    []bool  // of each OpMark: what follows is computing
	readers  []*part // in the order of their OpReads
	begun    int     // chunks, of those that are piped next, whose copies are among the commands
	freed    uint64  // buffers, by bit, that the stream has noted to be free
	side     uint8   // the copy stream that was last begun on
	lists    []byte  // of segments to scan, which go before all of it
	memory   []byte  // of what was read last
}

// mark has what follows count as computing, or not.
func (b *batch) mark(computing bool) {
	if n := len(b.marks); n == 0 && !computing || n > 0 && b.marks[n-1] == computing {
		return
	}
	b.commands = append(b.commands, device.Command{Op: device.OpMark})
	b.marks = append(b.marks, computing)
}

// run sends the commands and shares out what was read.
func (b *batch) run() error {
	if len(b.commands) == 0 {
		return nil
	}
	if n := len(b.marks); n > 0 && b.marks[n-1] {
		b.mark(false)
		if last := len(b.commands) - 1; b.commands[last-1].Op == device.OpRead {
			b.commands[last], b.commands[last-1] = b.commands[last-1], b.commands[last]
		}
	}
	if len(b.lists) > 0 {
		b.commands = slices.Insert(b.commands, 0, device.Command{Op: device.OpWrite, Dst: b.j.lists, Data: b.lists})
	}
	// What is copied before the first kernel is timed, too; what goes beside kernels is not.
	if first := slices.IndexFunc(b.commands, func(c device.Command) bool { return c.Op == device.OpMark }); first > 0 &&
		slices.ContainsFunc(b.commands[:first], func(c device.Command) bool { return c.Op == device.OpCopyShared && c.Side == 0 }) {
		b.commands, b.marks = slices.Insert(b.commands, 0, device.Command{Op: device.OpMark}), slices.Insert(b.marks, 0, false)
	}
	reply, err := b.j.send(b.stream, b.commands, b.marks)
	if err != nil {
		return err
	}
	for i, p := range b.readers {
		p.data = reply.Data[i]
	}
	b.memory = reply.Memory
	b.commands, b.marks, b.readers, b.begun, b.freed, b.lists = b.commands[:0], b.marks[:0], nil, 0, 0, nil
	return nil
}

// send has the executor run commands. What has begun is not interrupted: memory is in use
// until its end. marks says after which of the commands' marks there is computing.
func (j *job) send(stream int, commands []device.Command, marks []bool) (*device.Reply, error) {
	if err := j.ctx.Err(); err != nil {
		return nil, err
	}
	for i := range commands {
		switch c := &commands[i]; c.Op {
		case device.OpWrite:
			j.stats.BytesCopied += int64(len(c.Data))
		case device.OpCopyShared:
			for _, p := range c.Pieces {
				j.stats.BytesCopied += p.Bytes
			}
		}
	}
	j.spent(&j.stats.Times.Prepare)
	reply, err := j.d.ex.Run(context.WithoutCancel(j.ctx), j.d.index, &device.Batch{Stream: stream, Commands: commands})
	if j.spent(&j.stats.Times.RoundTrip); err != nil {
		return nil, err
	}
	j.stats.Times.Executor += reply.Took
	j.stats.Times.Enqueue += reply.Enqueue
	for i, ms := range reply.Millis {
		if marks[i] {
			j.stats.Kernel += ms
		} else {
			j.stats.Copy += ms
		}
	}
	return reply, nil
}

// bring has chunks brought and transcoded, after what the batch has.
func (b *batch) bring(chunks []*chunk) error {
	if err := b.pipeline(chunks, nil, nil); err != nil {
		return err
	}
	return b.run()
}

// pipeline brings chunks, one being copied while another is transcoded and computed, each of
// readers its segments, with a share of what p has resident: were that computed before, the buffers
// would be full and copies pause. After the last copy nothing but its chunk is left.
func (b *batch) pipeline(chunks []*chunk, p *part, readers []*part) error {
	shares := max(len(chunks)-1, 1)
	for first := 0; first < len(chunks); {
		if first > 0 {
			if err := b.run(); err != nil {
				return err
			}
		}
		end := b.group(chunks, first)
		b.commands = slices.Grow(b.commands, (end-first)*(commandsPerChunk+2*len(readers)))
		b.ahead(chunks[first:end])
		for k := first; k < end; k++ {
			c := chunks[k]
			b.commands = append(b.commands, device.Command{Op: device.OpAwait, Event: c.copied()})
			b.mark(true)
			b.commands = b.j.chunkTranscode(b.commands, c)
			if p != nil {
				sms := b.j.d.info.SMs
				list := c.list
				if k+1 < len(chunks) {
					sms = besideCopies(sms)
				}
				if k < shares {
					list = slices.Concat(p.resident[len(p.resident)*k/shares:len(p.resident)*(k+1)/shares], list)
					slices.Sort(list)
				}
				for _, r := range readers {
					b.scan(r, r.among(list, p), sms)
				}
			}
			b.mark(false)
			b.free(c)
			if next := first + b.begun; next < end {
				b.begin(chunks[next])
			}
		}
		first, b.begun = end, 0
	}
	return nil
}

// scan appends the computing of segments, beside copies. Lists of segments come from device memory: a write from
// the host would wait behind the copies that the bus is busy with.
func (b *batch) scan(p *part, list []uint32, sms int) {
	first := len(b.commands)
	b.commands = p.scan(b.commands, list, sms)
	for i := range b.commands[first:] {
		if c := &b.commands[first+i]; c.Op == device.OpWrite {
			*c, b.lists = device.Command{Op: device.OpCopy, Dst: c.Dst, Src: b.j.lists + device.Pointer(len(b.lists)), Bytes: uint64(len(c.Data))}, append(b.lists, c.Data...)
			for len(b.lists)%listAlign != 0 {
				b.lists = append(b.lists, 0)
			}
		}
	}
}

// listAlign is the alignment of a list, and so the most that a segment takes in lists.
const listAlign = 16

// commandsPerChunk is how many most chunks have, and what follows the last.
const commandsPerChunk = 10

// group returns the end of what one batch has of chunks from first on.
func (b *batch) group(chunks []*chunk, first int) int {
	most := cmp.Or(b.j.d.m.opt.batch, batchBytes)
	bytes := int64(0)
	for k := first; k < len(chunks); k++ {
		if bytes += chunks[k].bytes; bytes > most && k > first {
			return k
		}
	}
	return len(chunks)
}

// ahead begins the copies to all buffers, of chunks that are piped next.
func (b *batch) ahead(chunks []*chunk) {
	for n := min(len(b.j.slots), b.group(chunks, 0)); b.begun < n; {
		b.begin(chunks[b.begun])
	}
}

// begin begins the copies of the next chunk, on a stream of their own: as soon as what its buffer
// had is computed, without the host. Streams take turns, so that the bus does not pause where one
// chunk ends and the next begins. Commands stand where they are right without that, too: after
// what computes what the buffer had.
func (b *batch) begin(c *chunk) {
	b.side = b.side%device.CopyStreams + 1
	b.begun++
	first := len(b.commands)
	if b.freed>>c.slot&1 != 0 {
		b.commands = append(b.commands, device.Command{Op: device.OpAwait, Event: c.free()})
	}
	b.commands = append(b.commands, c.commands()...)
	b.commands = append(b.commands, device.Command{Op: device.OpRecord, Event: c.copied()})
	for i := range b.commands[first:] {
		b.commands[first+i].Side = b.side
	}
}

// free notes that a chunk's buffer is free from here on.
func (b *batch) free(c *chunk) {
	b.freed |= 1 << c.slot
	b.commands = append(b.commands, device.Command{Op: device.OpRecord, Event: c.free()})
}

// copies appends copies to their places.
func (j *job) copies(commands []device.Command, list []direct) []device.Command {
	for i := range list {
		if d := &list[i]; d.bytes > 0 {
			commands = append(commands, device.Command{Op: device.OpCopy, Dst: d.dst, Src: d.from, Bytes: uint64(d.bytes)})
		} else {
			commands = j.copy(commands, d.dst, d.data)
		}
	}
	return commands
}

// copy appends a copy of host memory: by offset where the executor has it.
func (j *job) copy(commands []device.Command, dst device.Pointer, data []byte) []device.Command {
	off, ok := j.offset(data)
	if !ok {
		return append(commands, device.Command{Op: device.OpWrite, Dst: dst, Data: data})
	}
	last := len(commands) - 1
	if last < 0 || commands[last].Op != device.OpCopyShared {
		commands, last = append(commands, device.Command{Op: device.OpCopyShared, File: j.d.file}), last+1
	}
	addPiece(&commands[last], device.Piece{Offset: off, Bytes: int64(len(data)), Dst: dst})
	return commands
}

// offset is where data lies in the shared file.
func (j *job) offset(data []byte) (off int64, ok bool) {
	if j.d.shared {
		off, ok = j.d.m.opt.Offset(data)
	}
	return off, ok
}

// addPiece appends a piece to a copy and returns how many bytes more that copies: what lies between
// two pieces at the same distance is copied along.
func addPiece(c *device.Command, p device.Piece) (bytes int64) {
	if n := len(c.Pieces); n > 0 {
		last := &c.Pieces[n-1]
		if p.Offset >= last.Offset+last.Bytes && p.Offset-last.Offset == int64(p.Dst)-int64(last.Dst) && p.Offset-last.Offset-last.Bytes < granule {
			bytes = p.Offset + p.Bytes - last.Offset - last.Bytes
			last.Bytes += bytes
			return bytes
		}
	}
	c.Pieces = append(c.Pieces, p)
	return p.Bytes
}

// chunkTranscode appends the making of a chunk's device lanes.
func (j *job) chunkTranscode(commands []device.Command, c *chunk) []device.Command {
	if c.orders == 0 {
		return commands
	}
	return append(commands, program.Transcode(j.lanes, j.orders+device.Pointer(c.first*program.TranscodeJobBytes), c.orders, c.rows))
}
