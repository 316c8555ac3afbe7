package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"pgaccel/gpu/device"
)

// pieceBytes is the size of a column of a segment, by and large.
const pieceBytes = 128 << 10

// pieces copies all of the file in pieces and out of order, in each way that the executor has,
// and then few bytes at all alignments.
func (t *tester) pieces(ctx context.Context, file *os.File, shared device.File, at device.Pointer) error {
	ways := []string{""}
	chooser, _ := t.ex.(interface{ UseCopies(way string) error })
	if chooser != nil {
		ways = []string{"copy", "gather 8", "gather 16", "gather", "gather 64", "gather 132", ""}
		defer func() { _ = chooser.UseCopies("") }()
	}
	n := t.bytes / pieceBytes
	from := rand.New(rand.NewPCG(1, uint64(n))).Perm(int(n))
	var all []device.Piece
	for i, p := range from {
		all = append(all, device.Piece{Offset: int64(p) * pieceBytes, Bytes: pieceBytes, Dst: at + device.Pointer(i*pieceBytes)})
	}
	for _, way := range ways {
		name := way
		if name == "" {
			name = "the way it chooses"
		}
		if chooser != nil {
			if err := chooser.UseCopies(way); err != nil {
				t.say("no copies by %q: %v", way, err)
				continue
			}
		}
		if n > 0 {
			best, clock := 0.0, time.Duration(0)
			for range 3 {
				begin := time.Now()
				r, err := t.c.Run(ctx, t.dev, &device.Batch{Stream: device.Streams - 1, Commands: []device.Command{
					{Op: device.OpFill, Dst: at, Value: 0xeeeeeeee, Bytes: uint64(n * pieceBytes)},
					{Op: device.OpMark},
					{Op: device.OpCopyShared, File: shared, Pieces: all},
					{Op: device.OpMark},
				}})
				if err != nil {
					return fmt.Errorf("pieces by %q: %w", name, err)
				}
				if best == 0 || r.Millis[0] < best {
					best, clock = r.Millis[0], time.Since(begin)
				}
			}
			t.say("copied %d MiB of shared memory in pieces of %d KiB, %s: %.3f ms, %.1f GB/s; by the clock %v", n*pieceBytes>>20, pieceBytes>>10, name, best, float64(n*pieceBytes)/best/1e6, clock)
			for i := 0; i < len(all); i += max(len(all)/64, 1) {
				if err := t.same(ctx, file, all[i:i+1]); err != nil {
					return fmt.Errorf("pieces by %q: %w", name, err)
				}
			}
		}
		var odd []device.Piece
		to := at
		for _, bytes := range []int64{1, 15, 16, 17, 33, 511, 4095, 4096, 4097, 20000} {
			for a := range int64(16) {
				for b := range int64(16) {
					if p := (device.Piece{Offset: 1024 + a, Bytes: bytes, Dst: to + device.Pointer(b)}); p.Offset+bytes < t.bytes && int64(p.Dst-at)+bytes < t.bytes {
						odd = append(odd, p)
						to += device.Pointer((b + bytes + 15) &^ 15)
					}
				}
			}
		}
		if _, err := t.c.Run(ctx, t.dev, &device.Batch{Commands: []device.Command{{Op: device.OpCopyShared, File: shared, Pieces: odd}}}); err != nil {
			return fmt.Errorf("pieces by %q: %w", name, err)
		}
		if err := t.same(ctx, file, odd); err != nil {
			return fmt.Errorf("pieces by %q: %w", name, err)
		}
	}
	return nil
}

// same compares pieces on the device with the file.
func (t *tester) same(ctx context.Context, file *os.File, pieces []device.Piece) error {
	b := &device.Batch{}
	for _, p := range pieces {
		b.Commands = append(b.Commands, device.Command{Op: device.OpRead, Src: p.Dst, Bytes: uint64(p.Bytes)})
	}
	r, err := t.c.Run(ctx, t.dev, b)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		want := make([]byte, p.Bytes)
		if _, err := file.ReadAt(want, p.Offset); err != nil {
			return err
		}
		if !bytes.Equal(r.Data[i], want) {
			return fmt.Errorf("%d bytes at %d of the file are wrong at %#x", p.Bytes, p.Offset, p.Dst)
		}
	}
	return nil
}
