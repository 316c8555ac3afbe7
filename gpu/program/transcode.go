package program

import (
	"pgaccel/gpu/device"
)

// TranscodeJobBytes is the size of what AppendTranscodeJob appends.
const TranscodeJobBytes = 40

// AppendTranscodeJob appends the order to make device lanes at dst, LaneWords(rows, f.Width)
// words, of a column that package compress encoded and whose words are at src, both
// aligned to 16 bytes. Of dst's last 128 words nothing is written.
func AppendTranscodeJob(b []byte, src, dst device.Pointer, rows int, f LaneFormat) []byte {
	panic("TODO")
}

// TranscodeSource is the module with the kernel that Transcode launches.
func TranscodeSource() device.Source { panic("TODO") }

// Transcode returns the command that carries out n jobs, of at most rows rows each, whose
// descriptors are at jobs.
func Transcode(m device.Module, jobs device.Pointer, n, rows int) device.Command {
	panic("TODO")
}
