package gpu

import (
	"context"
	"errors"
	"math"
	"slices"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// copiesAhead is how many copies are sent before the first of them has ended, each on a
// stream of its own.
const copiesAhead = device.CopyStreams

// copyStream is the stream of a chunk's copies, which run beside kernels.
func copyStream(chunk int) int { return device.Streams - 1 - chunk%device.CopyStreams }

// copySMs is how many multiprocessors kernels leave free while copies run beside them: a copy of
// many pieces is a kernel of 16 blocks, and a scan's blocks stay on their multiprocessors to its
// end, with all of its registers.
const copySMs = 16

// besideCopies is the number of multiprocessors for kernels that run beside copies: at least
// half of all.
func besideCopies(sms int) int { return max(sms-copySMs, (sms+1)/2) }

// errAgain says that something another query was to bring did not come.
var errAgain = errors.New("another query did not bring its columns")

// execute runs what acquire prepared: one batch, where all is there or little is to come.
func (j *job) execute(stream int) (*program.Result, error) {
	if len(j.chunks) > 1 || len(j.waits) > 0 && j.own != nil {
		// Others may wait for what this brings; to wait for theirs first could be a circle.
		if err := j.pipeline(stream, j.copies(nil, j.direct), j.chunks, nil); err != nil {
			return nil, err
		}
		j.settle(&j.own, nil)
		j.direct, j.chunks = nil, nil
	}
	for _, l := range j.waits {
		select {
		case <-l.done:
		case <-j.ctx.Done():
			return nil, j.ctx.Err()
		}
		if l.err != nil {
			var fault *device.Fault
			if errors.As(l.err, &fault) {
				return nil, l.err
			}
			return nil, errAgain
		}
	}

	b := batch{j: j, stream: stream}
	b.commands = j.copies(make([]device.Command, 0, 32), j.direct)
	for _, c := range j.chunks {
		b.commands = j.chunkCopies(b.commands, c)
	}
	b.mark()
	for _, c := range j.chunks {
		b.commands = j.chunkTranscode(b.commands, c)
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
	}
	b.commands = program.Clear(b.commands, j.lanes, regions, sms)
	for _, p := range j.parts {
		if len(p.streams) == 0 {
			b.commands = p.scan(b.commands, p.resident, sms)
			continue
		}
		if err := b.run(); err != nil {
			return nil, err
		}
		if err := j.pipeline(stream, nil, p.streams, p); err != nil {
			return nil, err
		}
		b.mark()
	}
	b.commands = query.shape.g.Finish(b.commands, query.q, query.module, &query.b, sms)
	b.readers = append(b.readers, query)
	if err := b.run(); err != nil {
		return nil, err
	}
	j.settle(&j.own, nil)
	return j.result(stream, query)
}

// result makes the query's result of what was read.
func (j *job) result(stream int, query *part) (*program.Result, error) {
	g := query.shape.g
	var rest []byte
	if c, more := g.Rest(query.q, &query.b, query.data); more {
		reply, err := j.send(stream, []device.Command{c})
		if err != nil {
			return nil, err
		}
		rest = reply.Data[0]
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
	marked   bool
	readers  []*part // in the order of their OpReads
}

// mark begins what counts as computing.
func (b *batch) mark() {
	b.commands = append(b.commands, device.Command{Op: device.OpMark})
	b.marked = true
}

// run sends the commands and shares out what was read.
func (b *batch) run() error {
	if len(b.commands) == 0 {
		return nil
	}
	if b.marked {
		end := device.Command{Op: device.OpMark}
		if last := len(b.commands) - 1; b.commands[last].Op == device.OpRead {
			end, b.commands[last] = b.commands[last], end
		}
		b.commands = append(b.commands, end)
	}
	reply, err := b.j.send(b.stream, b.commands)
	if err != nil {
		return err
	}
	for i, p := range b.readers {
		p.data = reply.Data[i]
	}
	b.commands, b.readers, b.marked = b.commands[:0], nil, false
	return nil
}

// send has the executor run commands. What has begun is not interrupted: memory is in use
// until its end.
func (j *job) send(stream int, commands []device.Command) (*device.Reply, error) {
	if err := j.ctx.Err(); err != nil {
		return nil, err
	}
	copied := int64(0)
	for i := range commands {
		switch c := &commands[i]; c.Op {
		case device.OpWrite:
			copied += int64(len(c.Data))
		case device.OpCopyShared:
			for _, p := range c.Pieces {
				copied += p.Bytes
			}
		}
	}
	reply, err := j.d.ex.Run(context.WithoutCancel(j.ctx), j.d.index, &device.Batch{Stream: stream, Commands: commands})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.BytesCopied += copied
	if err != nil {
		return nil, err
	}
	for _, ms := range reply.Millis {
		j.stats.Kernel += ms
	}
	return reply, nil
}

// pipeline brings chunks, one being copied while another is transcoded and, for p, computed with
// as large a share of what is resident: were that computed before, the buffers would be full and
// copies pause. first runs before all of it.
func (j *job) pipeline(stream int, first []device.Command, chunks []*chunk, p *part) error {
	if len(first) > 0 {
		if _, err := j.send(stream, first); err != nil {
			return err
		}
	}
	// A buffer is used again when what it had is computed.
	n := min(len(j.slots), len(chunks))
	for k := range n {
		j.begin(chunks, k)
	}
	var failed error
	b := batch{j: j, stream: stream}
	for k, c := range chunks {
		if c.copied == nil {
			break // not begun
		}
		<-c.copied
		if c.err != nil && failed == nil {
			failed = c.err
		}
		if failed != nil {
			continue // until no copy runs
		}
		b.mark()
		b.commands = j.chunkTranscode(b.commands, c)
		if p != nil {
			sms := j.d.info.SMs
			if k+1 < len(chunks) {
				sms = besideCopies(sms)
			}
			share := p.resident[len(p.resident)*k/len(chunks) : len(p.resident)*(k+1)/len(chunks)]
			list := slices.Concat(share, c.list)
			slices.Sort(list)
			b.commands = p.scan(b.commands, list, sms)
		}
		if failed = b.run(); failed == nil && k+n < len(chunks) {
			j.begin(chunks, k+n)
		}
	}
	return failed
}

// begin begins the copy of chunk k to its buffer, if that was not done, beside whatever else the
// job does. The chunks before have begun. They are computed in their order and so are to be
// copied in it: two copies wait at the device, so that it always has one, and the next is sent
// when the first of them has ended.
func (j *job) begin(chunks []*chunk, k int) {
	c := chunks[k]
	if c.copied != nil {
		return
	}
	var sent, copied chan struct{}
	if k > 0 {
		sent = chunks[k-1].sent
	}
	if k >= copiesAhead {
		copied = chunks[k-copiesAhead].copied
	}
	c.sent, c.copied = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(c.copied)
		commands := j.chunkCopies(nil, c)
		if sent != nil {
			<-sent
		}
		if copied != nil {
			<-copied
		}
		close(c.sent)
		if len(commands) > 0 {
			_, c.err = j.send(copyStream(k), commands)
		}
	}()
}

// drain waits until no copy runs: what they write to is the job's until then.
func (j *job) drain() {
	for _, p := range j.parts {
		for _, c := range p.streams {
			if c.copied != nil {
				<-c.copied
			}
		}
	}
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
	off, ok := int64(0), false
	if j.d.shared {
		off, ok = j.d.m.opt.Offset(data)
	}
	if !ok {
		return append(commands, device.Command{Op: device.OpWrite, Dst: dst, Data: data})
	}
	n := int64(len(data))
	if last := len(commands) - 1; last >= 0 && commands[last].Op == device.OpCopyShared {
		c := &commands[last]
		// What lies between two pieces at the same distance is copied along.
		if p := &c.Pieces[len(c.Pieces)-1]; off >= p.Offset+p.Bytes && off-p.Offset == int64(dst)-int64(p.Dst) && off-p.Offset-p.Bytes < granule {
			p.Bytes = off + n - p.Offset
		} else {
			c.Pieces = append(c.Pieces, device.Piece{Offset: off, Bytes: n, Dst: dst})
		}
		return commands
	}
	pieces := append(make([]device.Piece, 0, 64), device.Piece{Offset: off, Bytes: n, Dst: dst})
	return append(commands, device.Command{Op: device.OpCopyShared, File: j.d.file, Pieces: pieces})
}

// chunkCopies appends the copies of a chunk to its buffer, and the orders to transcode it.
func (j *job) chunkCopies(commands []device.Command, c *chunk) []device.Command {
	for i := range c.words {
		commands = j.copy(commands, c.words[i].src, bytesOf(c.words[i].words))
	}
	commands = j.copies(commands, c.direct)
	if len(c.words) == 0 {
		return commands
	}
	orders := make([]byte, 0, len(c.words)*program.TranscodeJobBytes)
	for i := range c.words {
		e := &c.words[i]
		orders = program.AppendTranscodeJob(orders, e.src, e.dst, e.rows, e.format)
	}
	return append(commands, device.Command{Op: device.OpWrite, Dst: c.slot + device.Pointer(c.used), Data: orders})
}

// chunkTranscode appends the making of a chunk's device lanes.
func (j *job) chunkTranscode(commands []device.Command, c *chunk) []device.Command {
	if len(c.words) == 0 {
		return commands
	}
	return append(commands, program.Transcode(j.lanes, c.slot+device.Pointer(c.used), len(c.words), c.rows))
}
