package tile

import (
	"encoding/binary"
	"fmt"

	"pgaccel/compress"
	"pgaccel/gpu/device"
	"pgaccel/papers/kernels"
)

// Decoder is one way to decode one format.
type Decoder struct {
	Format string // "for", "dfor", "rfor", "lanes"
	Step   string // "base", "shared", "tiles", "offsets", "warp", "words", "quads"
	D      int    // blocks that a thread block or a warp decodes, where that can be chosen

	file, kernel string
	rows         func(d, width int) int // that a thread block decodes
}

// Name returns what people call the decoder.
func (d Decoder) Name() string {
	if d.D > 1 {
		return fmt.Sprintf("%s %s %d", d.Format, d.Step, d.D)
	}
	return d.Format + " " + d.Step
}

const (
	threads    = 128 // of a block: TILE_THREADS
	warps      = threads / 32
	blockRows  = 128
	runRows    = 512
	vectorRows = 1024
	sumSlots   = 1024 // TILE_SLOTS
	// tilesAtOnce is TILE_TILES of tile_delta.cuh.
	tilesAtOnce = 4
)

// allDecoders returns all of them, each format's simplest first.
func allDecoders() []Decoder {
	blocks := func(d, _ int) int { return d * blockRows }
	perWarp := func(d, _ int) int { return warps * d * blockRows }
	lanes := func(_, width int) int { return warps * vectorsAtOnce(width) * vectorRows }
	list := []Decoder{
		{"for", "base", 1, "tile_for.cuh", "tile_for_base", blocks},
		{"for", "shared", 1, "tile_for.cuh", "tile_for_shared", blocks},
	}
	for _, d := range []int{2, 4, 8, 16, 32} {
		list = append(list, Decoder{"for", "tiles", d, "tile_for.cuh", "tile_for_shared", blocks})
	}
	for _, d := range []int{4, 16} {
		list = append(list, Decoder{"for", "offsets", d, "tile_for.cuh", "tile_for_offsets", blocks})
	}
	for _, d := range []int{1, 2, 4, 8} {
		list = append(list, Decoder{"for", "warp", d, "tile_for.cuh", "tile_for_warp", perWarp})
	}
	return append(list,
		Decoder{"dfor", "shared", 0, "tile_delta.cuh", "tile_delta_shared", func(int, int) int { return tilesAtOnce * runRows }},
		Decoder{"dfor", "warp", 0, "tile_delta.cuh", "tile_delta_warp", func(int, int) int { return warps * runRows }},
		Decoder{"rfor", "shared", 0, "tile_runs.cuh", "tile_runs_shared", func(int, int) int { return runRows }},
		Decoder{"rfor", "warp", 0, "tile_runs.cuh", "tile_runs_warp", func(int, int) int { return warps * runRows }},
		Decoder{"lanes", "words", 0, "tile_lanes.cuh", "tile_lanes_words", lanes},
		Decoder{"lanes", "quads", 0, "tile_lanes.cuh", "tile_lanes_quads", lanes},
	)
}

// vectorsAtOnce returns how many vectors a warp decodes: narrow ones need more for as many
// bytes to be under way.
func vectorsAtOnce(width int) int {
	switch {
	case width <= 8:
		return 4
	case width <= 16:
		return 2
	}
	return 1
}

// Source is the module of the decoder; lanes have one for each width. sum is whether
// values are added up instead of written.
func (d Decoder) Source(width int, sum bool) device.Source {
	s := device.Source{Name: "tile_" + d.Format, Code: "#include \"" + d.file + "\"\n", Headers: kernels.Headers()}
	one := 0
	if sum {
		one = 1
	}
	s.Defines = append(s.Defines, fmt.Sprintf("TILE_SUM=%d", one))
	if d.D > 0 {
		s.Defines = append(s.Defines, fmt.Sprintf("TILE_D=%d", d.D))
	}
	if d.Format == "lanes" {
		s.Defines = append(s.Defines, fmt.Sprintf("TILE_WIDTH=%d", width), fmt.Sprintf("TILE_VECTORS=%d", vectorsAtOnce(width)))
	}
	return s
}

// Launch returns the command that decodes n segments of at most rows rows, whose
// descriptors (appendSegment) are at segments. sums are 1024 words of partial sums.
func (d Decoder) Launch(m device.Module, segments, sums device.Pointer, n, rows, width int) device.Command {
	each := d.rows(d.D, width)
	return device.Command{Op: device.OpLaunch, Module: m, Function: d.kernel,
		Grid: [3]uint32{uint32(max(1, (rows+each-1)/each)), uint32(n), 1}, Block: [3]uint32{threads, 1, 1},
		Params: new(device.Params).Ptr(segments).Ptr(sums).Bytes()}
}

// segmentBytes is the size of a descriptor.
const segmentBytes = 24

// appendSegment appends the descriptor of a segment: where its words are, where its values
// go (room for rows rounded up to 1024), and of lanes the reference.
func appendSegment(b []byte, words, out device.Pointer, rows int, reference int32) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(words))
	b = binary.LittleEndian.AppendUint64(b, uint64(out))
	b = binary.LittleEndian.AppendUint32(b, uint32(rows))
	return binary.LittleEndian.AppendUint32(b, uint32(reference))
}

// encode returns the words of a segment in a decoder's format: a compress column, or
// vectors of width bits. It fails where the values do not fit.
func encode(format string, values []int64, width int, reference int32) ([]uint32, error) {
	codecs := map[string]compress.Codec{"for": compress.CodecFOR, "dfor": compress.CodecDFOR, "rfor": compress.CodecRFOR}
	codec, ok := codecs[format]
	if !ok {
		return packLanes(values, width, reference)
	}
	c := compress.EncodeAs(codec, values, func(words int) []uint32 { return make([]uint32, words) })
	if c.Codec() != codec {
		return nil, fmt.Errorf("tile: %d values become %v, not %v", len(values), c.Codec(), codec)
	}
	return compress.Words(c), nil
}

// packLanes packs device lanes: value i is at position i%1024/32 of lane i%32 of its vector.
// 128 words follow that can be read.
func packLanes(values []int64, width int, reference int32) ([]uint32, error) {
	vectors := (len(values) + vectorRows - 1) / vectorRows
	words := make([]uint32, vectors*laneCount*width+128)
	for i, v := range values {
		off := uint64(v - int64(reference))
		if off>>width != 0 {
			return nil, fmt.Errorf("tile: %d less %d does not fit into %d bits", v, reference, width)
		}
		packLane(words[i/vectorRows*laneCount*width:], i%vectorRows, width, off)
	}
	return words, nil
}

// laneCount is the lanes of a vector.
const laneCount = 32

// packLane writes width bits of value i of a vector, which are 0 there.
func packLane(vector []uint32, i, width int, v uint64) {
	bit := i / laneCount * width
	at := bit/32*laneCount + i%laneCount
	if width > 0 {
		vector[at] |= uint32(v << (bit % 32))
	}
	if bit%32+width > 32 {
		vector[at+laneCount] |= uint32(v >> (32 - bit%32))
	}
}

// plainSource is the module of tile_read and tile_compare.
func plainSource() device.Source {
	return device.Source{Name: "tile_plain", Code: "#include \"tile_plain.cuh\"\n", Headers: kernels.Headers(), Defines: []string{"TILE_SUM=1"}}
}
