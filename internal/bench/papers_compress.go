package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"pgaccel/compress"
	"pgaccel/internal/ssb"
	"pgaccel/papers/tile"
)

// compressSegment is the rows of an encoded column, as the store has them.
const compressSegment = 65536

// papersCompression repeats figures 7 and 9 of "Tile-based Lightweight Integer
// Compression in GPU" (Shanbhag, Yogatama, Yu, Madden; SIGMOD 2022) on this machine's
// processor: bits a value of the columns of the Star Schema Benchmark, and the speed of
// decoding by bit width. Everything that is decoded is compared with what was encoded.
func papersCompression(ctx context.Context, out io.Writer, quick bool) error {
	fmt.Fprintln(out, `Compressed columns (Shanbhag et al., "Tile-based Lightweight Integer Compression in GPU")`)
	scale, rows, rounds := 0.2, 16*compressSegment, 15
	if quick {
		scale, rows, rounds = 0.02, compressSegment, 5
	}
	if err := printRatios(ctx, out, scale); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printDecoding(ctx, out, rows, rounds); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return printFiltering(ctx, out, rows, rounds)
}

// allocWords is Go memory for an encoded column.
func allocWords(n int) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(make([]uint64, (n+1)/2)))), n)
}

// column is a compress.Column, or of another format that is compared with them.
type column interface {
	Len() int
	Bytes() int
	Decode(dst []int64, start int)
	FilterRange(mask []uint64, start, n int, lo, hi int64)
}

// A layout is a way to encode a segment.
type layout struct {
	name   string
	encode func(values []int64) (column, error)
}

// codec is the layout of a codec of the store.
func codec(name string, c compress.Codec) layout {
	return layout{name, func(values []int64) (column, error) { return compress.EncodeAs(c, values, allocWords), nil }}
}

var (
	paperLayouts = []layout{codec("GPU-FOR", compress.CodecFOR), codec("GPU-DFOR", compress.CodecDFOR), codec("GPU-RFOR", compress.CodecRFOR)}
	lanesLayout  = layout{"lanes", func(values []int64) (column, error) { return tile.EncodeLanes(values) }}
	// starLayout is GPU-*: whichever of the paper's three takes the fewest bytes.
	starLayout = layout{"GPU-*", func(values []int64) (best column, err error) {
		for _, l := range paperLayouts {
			if c, _ := l.encode(values); best == nil || c.Bytes() < best.Bytes() {
				best = c
			}
		}
		return best, nil
	}}
)

// checked encodes a segment, and checks what comes back.
func (l layout) checked(segment []int64) (column, error) {
	c, err := l.encode(segment)
	if err != nil {
		return nil, err
	}
	got := make([]int64, len(segment))
	if c.Decode(got, 0); !slices.Equal(got, segment) {
		return nil, fmt.Errorf("%s: decoded values are others", l.name)
	}
	return c, nil
}

// lineorderNames are the columns, in order.
var lineorderNames = []string{"orderkey", "linenumber", "custkey", "partkey", "suppkey", "orderdate", "ordpriority", "shippriority",
	"quantity", "extendedprice", "ordtotalprice", "discount", "revenue", "supplycost", "tax", "commitdate", "shipmode"}

// lineorder generates the fact table; texts become codes, dictionaries in order of
// appearance.
func lineorder(scale float64) ([][]int64, error) {
	var text bytes.Buffer
	if err := ssb.Source.Generate("lineorder", scale, 0, 1, &text); err != nil {
		return nil, err
	}
	columns := make([][]int64, len(lineorderNames))
	codes := make([]map[string]int64, len(lineorderNames))
	for line := range bytes.Lines(text.Bytes()) {
		fields := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if len(fields) != len(columns) {
			return nil, fmt.Errorf("lineorder has %d columns instead of %d", len(fields), len(columns))
		}
		for i, field := range fields {
			v, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				if codes[i] == nil {
					codes[i] = map[string]int64{}
				}
				code, ok := codes[i][string(field)]
				if !ok {
					code = int64(len(codes[i]))
					codes[i][string(field)] = code
				}
				v = code
			}
			columns[i] = append(columns[i], v)
		}
	}
	return columns, nil
}

// printRatios is the paper's figure 9: bits a value of each column and format.
func printRatios(ctx context.Context, out io.Writer, scale float64) error {
	columns, err := lineorder(scale)
	if err != nil {
		return err
	}
	layouts := append(slices.Clone(paperLayouts), starLayout, lanesLayout, codec("chosen", compress.CodecAuto))
	fmt.Fprintf(out, "Bits a value of lineorder at scale factor %v, texts as codes of a dictionary\n", scale)
	fmt.Fprintf(out, "%-14s %6s %8s %8s %8s %8s %8s %8s  %s\n", "lo_", "None", "GPU-FOR", "GPU-DFOR", "GPU-RFOR", "GPU-*", "lanes", "chosen", "as")
	var sum [6]int
	total := 0
	for i, values := range columns {
		if err := ctx.Err(); err != nil {
			return err
		}
		total += len(values)
		fmt.Fprintf(out, "%-14s %6d", lineorderNames[i], 32)
		var chosen []string
		for k, l := range layouts {
			bytes := 0
			for segment := range slices.Chunk(values, compressSegment) {
				c, err := l.checked(segment)
				if err != nil {
					return fmt.Errorf("lo_%s: %w", lineorderNames[i], err)
				}
				bytes += c.Bytes()
				if k == len(layouts)-1 {
					if name := c.(compress.Column).Codec().String(); !slices.Contains(chosen, name) {
						chosen = append(chosen, name)
					}
				}
			}
			sum[k] += bytes
			fmt.Fprintf(out, " %8.2f", 8*float64(bytes)/float64(len(values)))
		}
		fmt.Fprintf(out, "  %s\n", strings.Join(chosen, " "))
	}
	fmt.Fprintf(out, "%-14s %6d", "all", 32)
	for _, bytes := range sum {
		fmt.Fprintf(out, " %8.2f", 8*float64(bytes)/float64(total))
	}
	fmt.Fprintf(out, "\n%-14s %5.2fx", "None / it", 1.)
	for _, bytes := range sum {
		fmt.Fprintf(out, " %7.2fx", 4*float64(total)/float64(bytes))
	}
	fmt.Fprintln(out, "\nThe paper has 2.8x for GPU-* (scale factor 20, 14 columns).")
	return nil
}

// A way is one of several that are measured in turns: f does all rows once.
type way struct {
	name string
	f    func() error
}

// inTurns runs all ways once a round and returns their medians. Where ctx ends these are
// of the runs until then, beside its error; nil where a way has none.
func inTurns(ctx context.Context, ways []way, rounds int) ([]time.Duration, error) {
	times := make([][]time.Duration, len(ways))
	medians := func() (list []time.Duration) {
		for _, t := range times {
			if len(t) == 0 {
				return nil
			}
			list = append(list, median(t))
		}
		return list
	}
	for round := range rounds + 1 {
		for i, w := range ways {
			if err := ctx.Err(); err != nil {
				return medians(), err
			}
			start := time.Now()
			if err := w.f(); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 { // the first warms up
				times[i] = append(times[i], time.Since(start))
			}
		}
	}
	return medians(), nil
}

// decodeTile is the rows that the engine decodes at once.
const decodeTile = 1024

// uniform are rows values of width random bits.
func uniform(rows, width int) []int64 {
	r := rand.New(rand.NewPCG(7, uint64(width)))
	values := make([]int64, rows)
	for i := range values {
		values[i] = int64(r.Uint64() & (1<<width - 1))
	}
	return values
}

// segments encodes values in the store's segments.
func (l layout) segments(values []int64) (columns []column, err error) {
	for segment := range slices.Chunk(values, compressSegment) {
		c, err := l.checked(segment)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// printDecoding is the paper's figure 7a: uniform values by bit width, decoded tile by
// tile into the engine's 64-bit integers.
func printDecoding(ctx context.Context, out io.Writer, rows, rounds int) error {
	fmt.Fprintf(out, "Decoding %d uniform values, tile by tile, one thread: GB/s of 64-bit integers written; medians of %d rounds in turns\n", rows, rounds)
	fmt.Fprintf(out, "%5s %8s %8s %8s %8s %8s  %s\n", "bits", "memcpy", "GPU-FOR", "GPU-DFOR", "GPU-RFOR", "lanes", "GPU-FOR / memcpy")
	tile := make([]int64, decodeTile)
	for width := 2; width <= 30; width += 2 {
		values := uniform(rows, width)
		ways := []way{{"memcpy", func() error {
			for part := range slices.Chunk(values, decodeTile) {
				copy(tile, part)
			}
			return nil
		}}}
		for _, l := range append(slices.Clone(paperLayouts), lanesLayout) {
			columns, err := l.segments(values)
			if err != nil {
				return fmt.Errorf("%d bits: %w", width, err)
			}
			ways = append(ways, way{l.name, func() error {
				for _, c := range columns {
					for start := 0; start < c.Len(); start += decodeTile {
						c.Decode(tile[:min(decodeTile, c.Len()-start)], start)
					}
				}
				return nil
			}})
		}
		times, err := inTurns(ctx, ways, rounds)
		if times == nil {
			return err
		}
		fmt.Fprintf(out, "%5d", width)
		for _, t := range times {
			fmt.Fprintf(out, " %8.1f", 8*float64(rows)/float64(t.Nanoseconds()))
		}
		fmt.Fprintf(out, "  %.2f\n", float64(times[0])/float64(times[1]))
		if err != nil {
			return err
		}
	}
	return nil
}

// printFiltering compares a range on encoded values with the same on plain 32-bit ones,
// as one would write it in Go. A quarter of the values is inside.
func printFiltering(ctx context.Context, out io.Writer, rows, rounds int) error {
	fmt.Fprintf(out, "A range on %d uniform values into a bitmap: ns a value; medians of %d rounds in turns\n", rows, rounds)
	fmt.Fprintf(out, "%5s %8s %8s %8s  %s\n", "bits", "[]int32", "GPU-FOR", "lanes", "[]int32 / GPU-FOR")
	for width := 2; width <= 30; width += 4 {
		values := uniform(rows, width)
		narrow := make([]int32, rows)
		for i, v := range values {
			narrow[i] = int32(v)
		}
		lo, hi := int64(1)<<(width-2), int64(1)<<(width-1)-1
		masks := make([][]uint64, 3) // one for each way
		for i := range masks {
			masks[i] = make([]uint64, rows/64)
		}
		ways := []way{{"[]int32", func() error {
			low, count := uint32(lo), uint32(hi-lo)
			for w := range masks[0] {
				var m uint64
				for i, v := range (*[64]int32)(narrow[w*64:]) {
					in := uint64(0) // set without a branch, which would often go the other way
					if uint32(v)-low <= count {
						in = 1
					}
					m |= in << i
				}
				masks[0][w] = m
			}
			return nil
		}}}
		for i, l := range []layout{paperLayouts[0], lanesLayout} {
			columns, err := l.segments(values)
			if err != nil {
				return fmt.Errorf("%d bits: %w", width, err)
			}
			mask := masks[i+1]
			ways = append(ways, way{l.name, func() error {
				for i := range mask {
					mask[i] = ^uint64(0)
				}
				for s, c := range columns {
					for start := 0; start < c.Len(); start += decodeTile {
						n := min(decodeTile, c.Len()-start)
						at := (s*compressSegment + start) / 64
						c.FilterRange(mask[at:at+(n+63)/64], start, n, lo, hi)
					}
				}
				return nil
			}})
		}
		times, err := inTurns(ctx, ways, rounds)
		if times == nil {
			return err
		}
		for i, mask := range masks[1:] {
			if !slices.Equal(mask, masks[0]) {
				return fmt.Errorf("%d bits: %s finds other rows", width, ways[i+1].name)
			}
		}
		fmt.Fprintf(out, "%5d", width)
		for _, t := range times {
			fmt.Fprintf(out, " %8.3f", float64(t.Nanoseconds())/float64(rows))
		}
		fmt.Fprintf(out, "  %.2f\n", float64(times[0])/float64(times[1]))
		if err != nil {
			return err
		}
	}
	return nil
}
