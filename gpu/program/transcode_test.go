package program

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/compress"
	"pgaccel/gpu/device"
)

// columnsOf every codec: what it is for, of n rows.
func columnsOf(codec compress.Codec, n int, r *rand.Rand) (values []int64) {
	values = make([]int64, n)
	at := int64(r.IntN(1000))
	few := []int64{math.MinInt64 / 2, -5, 19920101, 19981231, 1 << 61}
	if r.IntN(2) == 0 {
		few = few[1:4] // close enough for words
	}
	change := []int{1, 4, 200}[r.IntN(3)] // one in so many differs from the one before
	for i := range values {
		switch codec {
		case compress.CodecPlain:
			values[i] = int64(r.Uint64())
		case compress.CodecFOR64:
			values[i] = int64(r.Uint64() >> (i / 32 * 7 % 64)) // miniblocks of every width
		case compress.CodecConstant:
			values[i] = -77
		case compress.CodecLookup:
			values[i] = few[r.IntN(len(few))]
		case compress.CodecDFOR64, compress.CodecRFOR64:
			if r.IntN(change) == 0 {
				at += int64(r.Uint64() >> 2)
			}
			values[i] = at
		case compress.CodecDFOR, compress.CodecRFOR:
			if r.IntN(change) == 0 {
				at += int64(r.IntN(9)) - 2
			}
			values[i] = at
		case compress.CodecALP:
			values[i] = int64(math.Float64bits(float64(r.IntN(20000)-9000) / 100))
			if r.IntN(50) == 0 {
				values[i] = int64(r.Uint64())
			}
		default:
			values[i] = int64(r.IntN(1 << (1 + i/128%20)))
		}
	}
	return values
}

var codecs = []compress.Codec{compress.CodecPlain, compress.CodecConstant, compress.CodecFOR, compress.CodecFOR64, compress.CodecLookup,
	compress.CodecDFOR, compress.CodecRFOR, compress.CodecDFOR64, compress.CodecRFOR64, compress.CodecALP}

// TestTranscode compares lanes that a device makes with packLanes, of every codec at edge
// lengths, in one launch.
func TestTranscode(t *testing.T) {
	d := newDevice(t)
	m, err := d.e.Compile(context.Background(), 0, TranscodeSource())
	if err != nil {
		t.Fatal(err)
	}
	type lanes struct {
		codec  compress.Codec
		values []int64
		f      LaneFormat
		to     device.Pointer
	}
	var all []lanes
	var jobs []byte
	r := rand.New(rand.NewPCG(3, 4))
	alloc := func(words int) []uint32 { return make([]uint32, words) }
	most := 0
	for _, codec := range codecs {
		for _, n := range append(slices.Clone(edgeLengths), 127*13, 5000, transcodeVectors*VectorRows, 2*transcodeVectors*VectorRows+77) {
			if n == 0 {
				continue
			}
			values := columnsOf(codec, n, r)
			if codec == compress.CodecFOR && n == 5000 {
				values = columnsOf(compress.CodecConstant, n, r) // width 0
			}
			var c compress.Column
			if codec == compress.CodecALP {
				c = compress.EncodeFloats(values, alloc)
			} else {
				c = compress.EncodeAs(codec, values, alloc)
			}
			if c.Codec() != codec && n > 1000 {
				t.Fatalf("%v became %v", codec, c.Codec())
			}
			f := LaneFormatOf(&SegmentColumn{Min: slices.Min(values), Max: slices.Max(values)})
			src := d.upload(bytesOf(compress.Words(c)))
			most = max(most, n)
			for _, width := range []uint32{f.Width,
				min(f.Width+uint32(r.IntN(9)), 64),          // that of a wider column
				uint32(r.IntN(33)), 33 + uint32(r.IntN(32)), // rows that are null lie outside
			} {
				f.Width = width
				x := lanes{codec, values, f, d.alloc(int64(4 * LaneWords(n, width)))}
				all = append(all, x)
				jobs = AppendTranscodeJob(jobs, src, x.to, n, f)
			}
		}
	}
	if len(jobs) != len(all)*TranscodeJobBytes {
		t.Fatalf("%d bytes of %d jobs", len(jobs), len(all))
	}
	d.run(Transcode(m, d.upload(jobs), len(all), most))
	for _, x := range all {
		want := make([]uint32, LaneWords(len(x.values), x.f.Width))
		packLanes(want, x.values, x.f)
		bytes := 4 * (len(want) - laneSlack)
		if bytes == 0 {
			continue
		}
		got := d.run(device.Command{Op: device.OpRead, Src: x.to, Bytes: uint64(bytes)}).Data[0]
		if !slices.Equal(got, bytesOf(want)[:bytes]) {
			t.Errorf("%v, %d rows, %+v: lanes differ", x.codec, len(x.values), x.f)
		}
	}
}

// TestLanes packs and unpacks every width.
func TestLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for width := range uint32(65) {
		for _, n := range edgeLengths {
			f := LaneFormat{int64(r.Uint64()), width}
			values, got := make([]int64, n), make([]int64, n)
			for i := range values {
				offset := r.Uint64()
				if width < 64 {
					offset &= 1<<width - 1
				}
				values[i] = int64(uint64(f.Reference) + offset)
			}
			words := make([]uint32, LaneWords(n, width))
			packLanes(words, values, f)
			if unpackLanes(got, words, f); !slices.Equal(got, values) {
				t.Fatalf("width %d, %d rows", width, n)
			}
		}
	}
}

// packLanes writes values as device lanes: what the transcoding kernels are tested against.
// dst has LaneWords(len(values), f.Width) words. Rows past the last have offset 0.
func packLanes(dst []uint32, values []int64, f LaneFormat) {
	clear(dst)
	for i, v := range values {
		offset := uint64(v) - uint64(f.Reference)
		vector := dst[i/VectorRows*laneCount*int(f.Width):]
		lane, position := i%laneCount, i%VectorRows/laneCount
		low := min(int(f.Width), 32)
		packLane(vector, lane, position, low, offset)
		packLane(vector[laneCount*low:], lane, position, int(f.Width)-low, offset>>32)
	}
}

// packLane writes the low width bits of v bit by bit.
func packLane(vector []uint32, lane, position, width int, v uint64) {
	for b := range width {
		at := position*width + b
		vector[at/32*laneCount+lane] |= uint32(v>>b&1) << (at % 32)
	}
}

// unpackLanes is the inverse of packLanes.
func unpackLanes(dst []int64, words []uint32, f LaneFormat) {
	for i := range dst {
		vector := words[i/VectorRows*laneCount*int(f.Width):]
		lane, position := i%laneCount, i%VectorRows/laneCount
		low := min(int(f.Width), 32)
		v := unpackLane(vector, lane, position, low) |
			unpackLane(vector[laneCount*low:], lane, position, int(f.Width)-low)<<32
		dst[i] = int64(uint64(f.Reference) + v)
	}
}

func unpackLane(vector []uint32, lane, position, width int) (v uint64) {
	for b := range width {
		at := position*width + b
		v |= uint64(vector[at/32*laneCount+lane]>>(at%32)&1) << b
	}
	return v
}
