package worker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"pgaccel/gpu/device"
)

// A packer appends to a frame's body. The zero value is not ready: newPacker.
type packer struct{ b []byte }

// newPacker leaves room for the frame's header in front of the body.
func newPacker(capacity int) *packer {
	return &packer{b: make([]byte, headerBytes, headerBytes+capacity)}
}

func (p *packer) num(v uint64)    { p.b = binary.AppendUvarint(p.b, v) }
func (p *packer) bytes(v []byte)  { p.num(uint64(len(v))); p.b = append(p.b, v...) }
func (p *packer) string(v string) { p.num(uint64(len(v))); p.b = append(p.b, v...) }

// An unpacker takes a body apart. After an error all that it returns is zero.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) num() uint64 {
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.bad, u.b = true, nil
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) num32() uint32 {
	v := u.num()
	if v > math.MaxUint32 {
		u.bad, u.b = true, nil
		return 0
	}
	return uint32(v)
}

// count returns a number of things of at least size bytes each, which are still to come.
func (u *unpacker) count(size int) int {
	v := u.num()
	if v > uint64(len(u.b)/size) {
		u.bad, u.b = true, nil
		return 0
	}
	return int(v)
}

func (u *unpacker) bytes() []byte {
	n := u.count(1)
	if n == 0 {
		return nil
	}
	return u.take(n)
}

// take returns the next n bytes, which count has said are there.
func (u *unpacker) take(n int) []byte {
	v := u.b[:n:n]
	u.b = u.b[n:]
	return v
}

func (u *unpacker) string() string { return string(u.bytes()) }

// end returns an error unless the body was exactly what was taken from it.
func (u *unpacker) end(what string) error {
	if u.bad || len(u.b) != 0 {
		return errFrame("%s", what)
	}
	return nil
}

// packBatch appends a batch. The data of its writes are raw, which it returns.
func packBatch(p *packer, b *device.Batch) (raw [][]byte) {
	p.num(uint64(b.Stream))
	p.num(uint64(len(b.Commands)))
	for i := range b.Commands {
		c := &b.Commands[i]
		p.b = append(p.b, byte(c.Op))
		p.num(uint64(c.Side))
		p.num(uint64(c.Event))
		p.num(uint64(c.Module))
		p.string(c.Function)
		for _, v := range c.Grid {
			p.num(uint64(v))
		}
		for _, v := range c.Block {
			p.num(uint64(v))
		}
		p.num(uint64(c.Shared))
		p.bytes(c.Params)
		p.num(uint64(c.File))
		p.num(uint64(len(c.Pieces)))
		// Of a fixed size: there may be thousands, for which the device waits.
		p.b = slices.Grow(p.b, len(c.Pieces)*pieceBytes)
		for _, piece := range c.Pieces {
			p.b = binary.LittleEndian.AppendUint64(p.b, uint64(piece.Offset))
			p.b = binary.LittleEndian.AppendUint64(p.b, uint64(piece.Bytes))
			p.b = binary.LittleEndian.AppendUint64(p.b, uint64(piece.Dst))
		}
		p.num(uint64(c.Dst))
		p.num(uint64(c.Src))
		p.num(c.Bytes)
		p.num(uint64(c.Value))
		p.num(uint64(len(c.Data)))
		if len(c.Data) > 0 {
			raw = append(raw, c.Data)
		}
	}
	return raw
}

// commandBytes is the least that a packed command takes, pieceBytes what a piece does.
const commandBytes, pieceBytes = 1 + 18, 24

// unpackBatch is packBatch's inverse. The batch's slices are parts of body and raw.
func unpackBatch(u *unpacker, raw []byte) (*device.Batch, error) {
	b := &device.Batch{Stream: int(u.num32())}
	n := u.count(commandBytes)
	if n > 0 {
		b.Commands = make([]device.Command, n)
	}
	for i := range b.Commands {
		c := &b.Commands[i]
		c.Op = device.Op(u.op())
		side := u.num()
		if side > math.MaxUint8 {
			return nil, errFrame("a command's stream")
		}
		c.Side, c.Event = uint8(side), u.num32()
		c.Module = device.Module(u.num())
		c.Function = u.string()
		for j := range c.Grid {
			c.Grid[j] = u.num32()
		}
		for j := range c.Block {
			c.Block[j] = u.num32()
		}
		c.Shared = u.num32()
		c.Params = u.bytes()
		c.File = device.File(u.num32())
		if pieces := u.count(pieceBytes); pieces > 0 {
			c.Pieces = make([]device.Piece, pieces)
			packed := u.take(pieces * pieceBytes)
			for j := range c.Pieces {
				b := packed[j*pieceBytes:][:pieceBytes]
				c.Pieces[j] = device.Piece{Offset: int64(binary.LittleEndian.Uint64(b)), Bytes: int64(binary.LittleEndian.Uint64(b[8:])),
					Dst: device.Pointer(binary.LittleEndian.Uint64(b[16:]))}
			}
		}
		c.Dst = device.Pointer(u.num())
		c.Src = device.Pointer(u.num())
		c.Bytes = u.num()
		c.Value = u.num32()
		size := u.num()
		if size > uint64(len(raw)) {
			return nil, errFrame("a batch's data")
		}
		if size > 0 {
			c.Data, raw = raw[:size:size], raw[size:]
		}
		if u.bad {
			break
		}
	}
	if len(raw) != 0 {
		return nil, errFrame("a batch's data")
	}
	return b, u.end("a batch")
}

func (u *unpacker) op() byte {
	if len(u.b) == 0 {
		u.bad = true
		return 0
	}
	v := u.b[0]
	u.b = u.b[1:]
	return v
}

// packReply appends what a batch brought back. The data are raw, which it returns.
func packReply(p *packer, r *device.Reply) (raw [][]byte) {
	p.num(uint64(len(r.Data)))
	for _, d := range r.Data {
		p.num(uint64(len(d)))
		if len(d) > 0 {
			raw = append(raw, d)
		}
	}
	p.num(uint64(len(r.Millis)))
	for _, v := range r.Millis {
		p.b = binary.LittleEndian.AppendUint64(p.b, math.Float64bits(v))
	}
	p.num(uint64(r.Enqueue))
	p.num(uint64(r.Took))
	return raw
}

// unpackReply is packReply's inverse. The data are parts of raw.
func unpackReply(u *unpacker, raw []byte) (*device.Reply, error) {
	r := &device.Reply{Memory: raw}
	if n := u.count(1); n > 0 {
		r.Data = make([][]byte, n)
	}
	for i := range r.Data {
		size := u.num()
		if size > uint64(len(raw)) {
			return nil, errFrame("a reply's data")
		}
		r.Data[i], raw = raw[:size:size], raw[size:]
	}
	if len(raw) != 0 {
		return nil, errFrame("a reply's data")
	}
	if n := u.count(8); n > 0 {
		r.Millis = make([]float64, n)
	}
	for i := range r.Millis {
		r.Millis[i] = math.Float64frombits(binary.LittleEndian.Uint64(u.b))
		u.b = u.b[8:]
	}
	r.Enqueue, r.Took = time.Duration(u.num()), time.Duration(u.num())
	return r, u.end("a reply")
}

// packSource appends a source. It goes as JSON: compiling takes much longer.
func packSource(p *packer, s *device.Source) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	p.bytes(b)
	return nil
}

func unpackSource(u *unpacker) (device.Source, error) {
	var s device.Source
	b := u.bytes()
	if err := u.end("a source"); err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, errFrame("a source: %v", err)
	}
	return s, nil
}

// Outcomes of a request, the first thing in a reply.
const (
	outcomeOK = iota
	outcomeFault
	outcomeCanceled
	outcomeDeadline
)

// packError appends a request's outcome.
func packError(p *packer, err error) {
	var fault *device.Fault
	switch {
	case err == nil:
		p.num(outcomeOK)
		return
	case errors.As(err, &fault):
	case errors.Is(err, context.Canceled):
		p.num(outcomeCanceled)
		return
	case errors.Is(err, context.DeadlineExceeded):
		p.num(outcomeDeadline)
		return
	default:
		fault = &device.Fault{Text: err.Error()}
	}
	p.num(outcomeFault)
	p.num(uint64(fault.Kind))
	p.string(fault.Call)
	p.string(fault.Text)
}

// unpackError returns a request's outcome; malformed says that there was none.
func unpackError(u *unpacker) (outcome, malformed error) {
	switch v := u.num(); {
	case u.bad || v > outcomeDeadline:
		return nil, errFrame("an outcome")
	case v == outcomeOK:
		return nil, nil
	case v == outcomeCanceled:
		return context.Canceled, u.end("an outcome")
	case v == outcomeDeadline:
		return context.DeadlineExceeded, u.end("an outcome")
	}
	f := &device.Fault{Kind: device.FaultKind(min(u.num(), math.MaxUint8)), Call: u.string(), Text: u.string()}
	if f.Kind > device.FaultUnavailable {
		return nil, errFrame("a fault of kind %d", uint8(f.Kind))
	}
	return f, u.end("a fault")
}
