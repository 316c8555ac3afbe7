package program

import (
	"encoding/binary"
	"math"

	"pgaccel/gpu/device"
	"pgaccel/kernels"
)

// TranscodeJobBytes is the size of what AppendTranscodeJob appends.
const TranscodeJobBytes = 32

// transcodeVectors is the number of vectors that a block makes, TRANSCODE_WARPS of
// kernels/transcode.cuh.
const transcodeVectors = 8

// AppendTranscodeJob appends the order to make device lanes at dst, LaneWords(rows, f.Width)
// words, of a column that package compress encoded and whose words are at src, both
// aligned to 16 bytes. Of dst's last 128 words nothing is written. The column is trusted:
// compress.Parse has checked it.
func AppendTranscodeJob(b []byte, src, dst device.Pointer, rows int, f LaneFormat) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(src))
	b = binary.LittleEndian.AppendUint64(b, uint64(dst))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Reference))
	b = binary.LittleEndian.AppendUint32(b, uint32(rows))
	return binary.LittleEndian.AppendUint32(b, f.Width)
}

// TranscodeSource is the module with the kernels that Transcode, Clear, Narrow, StringsAt and BuildHash launch.
func TranscodeSource() device.Source {
	return device.Source{
		Name: "transcode",
		Code: `#include "transcode.cuh"
#include "bitmaps.cuh"
#include "strings.cuh"
#include "hash.cuh"

PGACCEL_KERNEL(transcode, TranscodeParams, p, 256, 4)
{
	__shared__ TranscodeShared shared;
	transcode_vectors(p, shared);
}

PGACCEL_KERNEL(clear, ClearParams, p, 256, 4)
{
	clear_region(p);
}

PGACCEL_KERNEL(narrow, NarrowParams, p, NARROW_THREADS, 12)
{
	__shared__ NarrowShared shared;
	narrow_rows(p, shared);
}

PGACCEL_KERNEL(match, MatchParams, p, STRINGS_THREADS, 4)
{
	PGACCEL_DYNAMIC_SHARED(steps);
	match_strings(p, steps);
}

PGACCEL_KERNEL(measure, MeasureParams, p, STRINGS_THREADS, 4)
{
	PGACCEL_DYNAMIC_SHARED(steps);
	measure_strings(p, steps);
}

PGACCEL_KERNEL(hash, HashParams, p, HASH_THREADS, 4)
{
	hash_keys(p);
}
`,
		Headers: headers("pgaccel.cuh", "lanes.cuh", "tile.cuh", "transcode.cuh", "bitmaps.cuh", "strings.cuh", "hash.cuh"),
	}
}

// headers returns some of the kernels' building blocks.
func headers(names ...string) map[string]string {
	all, some := kernels.Headers(), map[string]string{}
	for _, name := range names {
		some[name] = all[name]
	}
	return some
}

// Transcode returns the command that carries out n jobs, of at most rows rows each, whose
// descriptors are at jobs.
func Transcode(m device.Module, jobs device.Pointer, n, rows int) device.Command {
	const blockRows = transcodeVectors * VectorRows
	p := new(device.Params).Ptr(jobs)
	for _, sign := range []int{1, -1} {
		for i := range 19 {
			p.U64(math.Float64bits(math.Pow10(sign * i)))
		}
	}
	return device.Command{Op: device.OpLaunch, Module: m, Function: "transcode",
		Grid: [3]uint32{uint32(n), uint32((rows + blockRows - 1) / blockRows), 1}, Block: [3]uint32{32 * transcodeVectors, 1, 1},
		Params: p.Bytes()}
}
