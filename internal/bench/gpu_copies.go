package bench

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
)

// copyRates are the machine's own: what other numbers are shares of. GB/s, 10^9 bytes.
type copyRates struct {
	Device float64 `json:"device_gb_s"` // a copy within the device, bytes read and bytes written
	Host   float64 `json:"host_gb_s"`   // from host memory, pinned, to the device
}

// String is a line for people.
func (c copyRates) String() string {
	return fmt.Sprintf("copies measured in this run: within the device %.0f GB/s (read + written), host to device %.1f GB/s", c.Device, c.Host)
}

// measureCopies measures both on one device, best of some runs.
func measureCopies(ctx context.Context, ex device.Executor, dev int, quick bool) (c copyRates, err error) {
	within, host, rounds := int64(2<<30), int64(1<<30), 10
	if quick {
		within, host, rounds = 1<<20, 1<<20, 2
	}
	if free := ex.Devices()[dev].Free; free > 0 {
		within = min(within, free/4&^255)
	}
	src, err := ex.Alloc(dev, within)
	if err != nil {
		return c, err
	}
	defer ex.Free(dev, src)
	dst, err := ex.Alloc(dev, within)
	if err != nil {
		return c, err
	}
	defer ex.Free(dev, dst)
	best := func(bytes int64, command device.Command) (float64, error) {
		rate := 0.0
		for range rounds {
			reply, err := ex.Run(ctx, dev, &device.Batch{Commands: []device.Command{{Op: device.OpMark}, command, {Op: device.OpMark}}})
			if err != nil {
				return 0, err
			}
			if n := len(reply.Millis); n > 0 && reply.Millis[n-1] > 0 {
				rate = max(rate, float64(bytes)/reply.Millis[n-1]/1e6)
			}
		}
		return rate, nil
	}
	if c.Device, err = best(2*within, device.Command{Op: device.OpCopy, Dst: dst, Src: src, Bytes: uint64(within)}); err != nil {
		return c, err
	}
	host = min(host, within)
	fd, err := unix.MemfdCreate("pgaccel-bench", unix.MFD_CLOEXEC)
	if err != nil {
		return c, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "pgaccel-bench")
	defer f.Close()
	if err := f.Truncate(host); err != nil {
		return c, err
	}
	// Pages that were never written would be the system's one page of zeroes.
	page := slices.Repeat([]byte{0x5a}, 1<<20)
	for at := int64(0); at < host; at += int64(len(page)) {
		if _, err := f.WriteAt(page[:min(int64(len(page)), host-at)], at); err != nil {
			return c, err
		}
	}
	shared, err := ex.Share(f)
	if err != nil {
		return c, err
	}
	// In pieces of the size of a segment's column, as the store's are.
	var pieces []device.Piece
	const piece = 128 << 10
	for at := int64(0); at < host; at += piece {
		pieces = append(pieces, device.Piece{Offset: at, Bytes: min(piece, host-at), Dst: dst + device.Pointer(at)})
	}
	c.Host, err = best(host, device.Command{Op: device.OpCopyShared, File: shared, Pieces: pieces})
	return c, err
}
