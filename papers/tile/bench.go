package tile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"pgaccel/compress"
	"pgaccel/gpu/device"
)

// Options say what Bench measures. The zero value is a column of 2^28 values in 16 segments.
type Options struct {
	SegmentRows int   // rows of a segment, at most 2^24; 2^24
	Segments    int   // 16
	Widths      []int // bits of values (of dfor, of deltas); 2 to 30
	// Decoder says which are measured; all by default.
	Decoder func(Decoder) bool
	Runs    int // of which the median counts; 9
	Warm    int // before them; 2
	// Progress is called before each decoder of a width.
	Progress func(name string, width int)
}

func (o *Options) defaults() {
	if o.SegmentRows <= 0 {
		o.SegmentRows = 1 << 24
	}
	if o.Segments <= 0 {
		o.Segments = 16
	}
	if len(o.Widths) == 0 {
		for w := 2; w <= 30; w++ {
			o.Widths = append(o.Widths, w)
		}
	}
	if o.Runs <= 0 {
		o.Runs = 9
	}
	if o.Warm <= 0 {
		o.Warm = 2
	}
}

// Row is one measurement.
type Row struct {
	Decoder    string // a Decoder's name, or "copy" and "read" of plain values
	Width      int    // bits; 32 of copy and read
	Sum        bool   // the values were added up; else they were written
	Rows       int64
	Millis     float64 // median, on the device
	Compressed int64   // bytes that were read
	Plain      int64   // bytes that were written, or would have been
	GBs        float64 // 10^9 bytes read and written a second
	OfCopy     float64 // GBs by that of copy
}

// bench is what the measurements of a device share.
type bench struct {
	ctx  context.Context
	ex   device.Executor
	dev  int
	opt  Options
	rows []Row

	in, out, want, segments, sums, flush device.Pointer // want is what a segment's values should be
	inBytes, outBytes, flushBytes        int64
	segmentOut                           int64 // bytes of a segment's values
	plain                                device.Module
	copied                               float64 // GB/s
}

// Bench decodes columns of random values by each decoder and width, and checks what comes
// out against package compress. Before each run the second-level cache is filled with
// something else. Copy and read bandwidth come first, as the yardstick. What was measured
// before an error is returned with it.
func Bench(ctx context.Context, ex device.Executor, dev int, opt Options) (_ []Row, err error) {
	opt.defaults()
	devices := ex.Devices()
	if dev < 0 || dev >= len(devices) {
		return nil, fmt.Errorf("tile: there is no device %d", dev)
	}
	b := &bench{ctx: ctx, ex: ex, dev: dev, opt: opt}
	b.segmentOut = int64(opt.SegmentRows+vectorRows-1) / vectorRows * vectorRows * 4
	b.outBytes = int64(opt.Segments) * b.segmentOut
	// The worst that a format makes of 32-bit values: a word each, and heads.
	b.inBytes = int64(opt.Segments) * (b.segmentOut*9/8 + 1<<16)
	b.flushBytes = max(2*devices[dev].L2, 1<<16) &^ 3
	defer func() { err = errors.Join(err, b.free()) }()
	for _, a := range []struct {
		p     *device.Pointer
		bytes int64
	}{{&b.in, b.inBytes}, {&b.out, b.outBytes}, {&b.want, b.segmentOut}, {&b.segments, int64(opt.Segments) * segmentBytes}, {&b.sums, sumSlots * 4}, {&b.flush, b.flushBytes}} {
		if *a.p, err = ex.Alloc(dev, a.bytes); err != nil {
			return nil, err
		}
	}
	if b.plain, err = ex.Compile(ctx, dev, plainSource()); err != nil {
		return nil, err
	}
	if err = b.yardsticks(); err != nil {
		return b.rows, err
	}
	for _, width := range opt.Widths {
		for _, format := range []string{"for", "dfor", "rfor", "lanes"} {
			if err = b.format(format, width); err != nil {
				return b.rows, fmt.Errorf("%s, %d bits: %w", format, width, err)
			}
		}
	}
	return b.rows, err
}

func (b *bench) free() error {
	var all error
	for _, p := range []device.Pointer{b.in, b.out, b.want, b.segments, b.sums, b.flush} {
		if p != 0 {
			all = errors.Join(all, b.ex.Free(b.dev, p))
		}
	}
	return all
}

func (b *bench) run(commands ...device.Command) (*device.Reply, error) {
	return b.ex.Run(b.ctx, b.dev, &device.Batch{Commands: commands})
}

// measure returns the median milliseconds of a command.
func (b *bench) measure(c device.Command) (float64, error) {
	var times []float64
	for i := range b.opt.Warm + b.opt.Runs {
		reply, err := b.run(device.Command{Op: device.OpFill, Dst: b.flush, Bytes: uint64(b.flushBytes), Value: uint32(i)},
			device.Command{Op: device.OpMark}, c, device.Command{Op: device.OpMark})
		if err != nil {
			return 0, err
		}
		if i >= b.opt.Warm {
			times = append(times, reply.Millis[0])
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func (b *bench) add(r Row) {
	bytes := r.Compressed
	if !r.Sum {
		bytes += r.Plain
	}
	if r.Millis > 0 {
		r.GBs = float64(bytes) / r.Millis / 1e6
	}
	if r.Decoder == "copy" {
		b.copied = r.GBs
	}
	if b.copied > 0 {
		r.OfCopy = r.GBs / b.copied
	}
	b.rows = append(b.rows, r)
}

// yardsticks measures copying and reading plain values.
func (b *bench) yardsticks() error {
	bytes := min(b.outBytes, b.inBytes) &^ 15
	row := Row{Decoder: "copy", Width: 32, Rows: bytes / 4, Compressed: bytes, Plain: bytes}
	if _, err := b.run(device.Command{Op: device.OpFill, Dst: b.in, Bytes: uint64(bytes), Value: 3}); err != nil {
		return err
	}
	var err error
	if row.Millis, err = b.measure(device.Command{Op: device.OpCopy, Dst: b.out, Src: b.in, Bytes: uint64(bytes)}); err != nil {
		return err
	}
	b.add(row)
	row.Decoder, row.Sum = "read", true
	grid := max(1, 16*b.ex.Devices()[b.dev].SMs)
	read := device.Command{Op: device.OpLaunch, Module: b.plain, Function: "tile_read", Grid: [3]uint32{uint32(grid), 1, 1}, Block: [3]uint32{threads, 1, 1},
		Params: new(device.Params).Ptr(b.in).Ptr(b.sums).U64(uint64(bytes / 16)).Bytes()}
	if row.Millis, err = b.measure(read); err != nil {
		return err
	}
	if err := b.checkSum(read, 3*uint32(bytes/4)); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	b.add(row)
	return nil
}

// checkSum runs a command that adds to the sums, and checks what they come to.
func (b *bench) checkSum(c device.Command, want uint32) error {
	reply, err := b.run(device.Command{Op: device.OpFill, Dst: b.sums, Bytes: sumSlots * 4}, c,
		device.Command{Op: device.OpRead, Src: b.sums, Bytes: sumSlots * 4})
	if err != nil {
		return err
	}
	var sum uint32
	for i := range sumSlots {
		sum += binary.LittleEndian.Uint32(reply.Data[0][4*i:])
	}
	if sum != want {
		return fmt.Errorf("the sum is %d modulo 2^32, and should be %d", sum, want)
	}
	return nil
}

// random returns a segment's values, as a format is made for, of up to width bits.
func random(format string, rows, width int) []int64 {
	rng := rand.New(rand.NewPCG(2022, uint64(width)))
	values := make([]int64, rows)
	switch format {
	case "dfor": // deltas of width bits: a sign, and the rest
		for i := range values {
			values[i] = int64(rng.Uint64() & (1<<(width-1) - 1))
		}
	case "rfor": // runs of 8 on average
		for i := 0; i < rows; {
			v, length := int64(rng.Uint64()&(1<<width-1)), 1+rng.IntN(15)
			for ; i < rows && length > 0; i, length = i+1, length-1 {
				values[i] = v
			}
		}
	default:
		for i := range values {
			values[i] = int64(rng.Uint64() & (1<<width - 1))
		}
	}
	return values
}

// format measures all decoders of a format.
func (b *bench) format(format string, width int) error {
	var decoders []Decoder
	for _, d := range allDecoders() {
		if d.Format == format && (b.opt.Decoder == nil || b.opt.Decoder(d)) {
			decoders = append(decoders, d)
		}
	}
	if len(decoders) == 0 {
		return nil
	}
	values := random(format, b.opt.SegmentRows, width)
	words, err := encode(format, values, width, 0)
	if err != nil {
		return err
	}
	compressed, err := b.upload(words)
	if err != nil {
		return err
	}
	want, err := decoded(format, words, values)
	if err != nil {
		return err
	}
	var sum uint32
	plain := make([]byte, 0, 4*len(want))
	for _, v := range want {
		sum += uint32(v)
		plain = binary.LittleEndian.AppendUint32(plain, uint32(v))
	}
	sum *= uint32(b.opt.Segments)
	if _, err := b.run(device.Command{Op: device.OpWrite, Dst: b.want, Data: plain}); err != nil {
		return err
	}
	for _, d := range decoders {
		if b.opt.Progress != nil {
			b.opt.Progress(d.Name(), width)
		}
		for _, adds := range []bool{false, true} {
			m, err := b.ex.Compile(b.ctx, b.dev, d.Source(width, adds))
			if err != nil {
				return err
			}
			c := d.Launch(m, b.segments, b.sums, b.opt.Segments, b.opt.SegmentRows, width)
			if adds {
				err = b.checkSum(c, sum)
			} else {
				err = b.checkValues(c, want)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", d.Name(), err)
			}
			row := Row{Decoder: d.Name(), Width: width, Sum: adds, Rows: int64(b.opt.Segments) * int64(b.opt.SegmentRows),
				Compressed: compressed, Plain: 4 * int64(b.opt.Segments) * int64(b.opt.SegmentRows)}
			if row.Millis, err = b.measure(c); err != nil {
				return err
			}
			b.add(row)
		}
	}
	return nil
}

// upload writes a segment's words once, copies them to the other segments, and
// describes all. It returns the bytes of all.
func (b *bench) upload(words []uint32) (int64, error) {
	bytes := int64(4*len(words)+255) &^ 255
	if bytes*int64(b.opt.Segments) > b.inBytes {
		return 0, fmt.Errorf("%d words for %d rows", len(words), b.opt.SegmentRows)
	}
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	commands := []device.Command{{Op: device.OpWrite, Dst: b.in, Data: data}}
	var heads []byte
	for s := range b.opt.Segments {
		at := b.in + device.Pointer(int64(s)*bytes)
		if s > 0 {
			commands = append(commands, device.Command{Op: device.OpCopy, Dst: at, Src: b.in, Bytes: uint64(len(data))})
		}
		heads = appendSegment(heads, at, b.out+device.Pointer(int64(s)*b.segmentOut), b.opt.SegmentRows, 0)
	}
	commands = append(commands, device.Command{Op: device.OpWrite, Dst: b.segments, Data: heads})
	_, err := b.run(commands...)
	return int64(len(data)) * int64(b.opt.Segments), err
}

// decoded returns what a device should: of compress' formats, what that package decodes.
func decoded(format string, words []uint32, values []int64) ([]int32, error) {
	if format != "lanes" {
		c, err := compress.Parse(words)
		if err != nil {
			return nil, err
		}
		values = make([]int64, len(values))
		c.Decode(values, 0)
	}
	plain := make([]int32, len(values))
	for i, v := range values {
		plain[i] = int32(v)
	}
	return plain, nil
}

// checkValues runs a command that decodes, and compares all segments on the device with what
// was written there. Where they differ it says which value of the first segment does.
func (b *bench) checkValues(c device.Command, want []int32) error {
	bytes := uint64(4 * len(want))
	commands := []device.Command{{Op: device.OpFill, Dst: b.out, Bytes: uint64(b.outBytes), Value: 0x5a5a5a5a}, {Op: device.OpFill, Dst: b.sums, Bytes: 4}, c}
	for s := range b.opt.Segments {
		commands = append(commands, device.Command{Op: device.OpLaunch, Module: b.plain, Function: "tile_compare", Grid: [3]uint32{256, 1, 1}, Block: [3]uint32{threads, 1, 1},
			Params: new(device.Params).Ptr(b.want).Ptr(b.out + device.Pointer(int64(s)*b.segmentOut)).Ptr(b.sums).U64(bytes / 4).Bytes()})
	}
	reply, err := b.run(append(commands, device.Command{Op: device.OpRead, Src: b.sums, Bytes: 4})...)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(reply.Data[0])
	if n == 0 {
		return nil
	}
	if reply, err = b.run(device.Command{Op: device.OpRead, Src: b.out, Bytes: bytes}); err != nil {
		return err
	}
	for i, v := range want {
		if got := int32(binary.LittleEndian.Uint32(reply.Data[0][4*i:])); got != v {
			return fmt.Errorf("%d values are wrong: value %d is %d, and should be %d", n, i, got, v)
		}
	}
	return fmt.Errorf("%d values are wrong, none of the first segment's", n)
}
