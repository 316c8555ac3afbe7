//go:build linux && cgo

package emulator

// #include "runtime.h"
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"pgaccel/gpu/device"
)

const (
	alignment = 256
	pattern   = 0xa5
	// fillLimit bounds what of an allocation has the pattern at either end.
	fillLimit = 8 << 20

	sigill  = int32(syscall.SIGILL)
	sigtrap = int32(syscall.SIGTRAP)
	sigfpe  = int32(syscall.SIGFPE)
)

// memory is a device's.
type memory struct {
	limit, used int64
	blocks      map[device.Pointer]*block
	streams     [device.Streams]sync.Mutex
}

// block is an allocation: a page that cannot be touched, what a page is longer than the
// bytes, bytes at start, up to alignment-1 bytes that nobody may write either, then again
// a page that cannot be touched.
type block struct {
	start uint64
	bytes int64
	base  unsafe.Pointer
	whole C.size_t
	front []byte // the slack before
	data  []byte // with the slack behind
}

func newMemory(limit int64) *memory {
	return &memory{limit: limit, blocks: make(map[device.Pointer]*block)}
}

func (m *memory) alloc(bytes int64) (device.Pointer, error) {
	if bytes <= 0 {
		return 0, fault(device.FaultOther, "alloc", fmt.Sprintf("%d bytes", bytes))
	}
	room := (bytes + alignment - 1) &^ (alignment - 1)
	if room > m.limit-m.used {
		return 0, fault(device.FaultMemory, "alloc", fmt.Sprintf("%d bytes, with %d of %d in use", bytes, m.used, m.limit))
	}
	b := &block{bytes: bytes}
	p := C.pgemu_map(C.size_t(room), &b.base, &b.whole)
	if p == nil {
		return 0, fault(device.FaultMemory, "alloc", fmt.Sprintf("mmap of %d bytes", room))
	}
	page := int64(os.Getpagesize())
	usable := (room + page - 1) &^ (page - 1)
	b.data = unsafe.Slice((*byte)(unsafe.Add(p, usable-room)), room)
	b.front = unsafe.Slice((*byte)(p), usable-room)
	fill(b.front, pattern*0x01010101)
	b.start = uint64(uintptr(unsafe.Pointer(&b.data[0])))
	fill(b.data[:min(len(b.data), fillLimit)], pattern*0x01010101)
	fill(b.data[max(0, len(b.data)-fillLimit):], pattern*0x01010101)
	m.blocks[device.Pointer(b.start)] = b
	m.used += room
	return device.Pointer(b.start), nil
}

func (m *memory) free(p device.Pointer) error {
	b := m.blocks[p]
	if b == nil {
		return fault(device.FaultOther, "free", fmt.Sprintf("%#x is not an allocation", uint64(p)))
	}
	var written error
	if text := b.overrun(); text != "" {
		written = fault(device.FaultLost, "free", text)
	}
	m.used -= int64(len(b.data))
	delete(m.blocks, p)
	C.pgemu_unmap(b.base, b.whole)
	return written
}

var untouched = bytes.Repeat([]byte{pattern}, 1<<16)

// overrun says what was written beside an allocation, or "".
func (b *block) overrun() string {
	behind := b.data[b.bytes:]
	if !bytes.Equal(behind, untouched[:len(behind)]) {
		for i, v := range behind {
			if v != pattern {
				return fmt.Sprintf("something wrote %d bytes behind an allocation of %d bytes", i, b.bytes)
			}
		}
	}
	if len(b.front) <= len(untouched) && !bytes.Equal(b.front, untouched[:len(b.front)]) {
		for i := len(b.front) - 1; i >= 0; i-- {
			if b.front[i] != pattern {
				return fmt.Sprintf("something wrote %d bytes before an allocation of %d bytes", len(b.front)-i, b.bytes)
			}
		}
	}
	return ""
}

// overrun says what was written beside any allocation, or "".
func (m *memory) overrun() string {
	for _, b := range m.blocks {
		if text := b.overrun(); text != "" {
			return text
		}
	}
	return ""
}

// span returns the memory of a command.
func (m *memory) span(call string, p device.Pointer, bytes uint64) ([]byte, error) {
	if bytes == 0 {
		return nil, nil
	}
	if b := m.blocks[p]; b != nil && bytes <= uint64(b.bytes) {
		return b.data[:bytes], nil
	}
	for _, b := range m.blocks {
		if at := uint64(p) - b.start; uint64(p) >= b.start && at < uint64(b.bytes) && bytes <= uint64(b.bytes)-at {
			return b.data[at : at+bytes], nil
		}
	}
	return nil, fault(device.FaultOther, call, fmt.Sprintf("%d bytes at %#x are not within an allocation", bytes, uint64(p)))
}

// near says where an address lies beside an allocation, or "".
func (m *memory) near(address uint64) string {
	page := uint64(os.Getpagesize())
	for _, b := range m.blocks {
		end := b.start + uint64(len(b.data))
		switch {
		case address < b.start && b.start-address <= 2*page:
			return fmt.Sprintf("%d bytes before an allocation of %d bytes", b.start-address, b.bytes)
		case address >= end && address-end < page:
			return fmt.Sprintf("%d bytes behind an allocation of %d bytes", address-b.start-uint64(b.bytes), b.bytes)
		}
	}
	return ""
}

func (m *memory) close() {
	for _, b := range m.blocks {
		C.pgemu_unmap(b.base, b.whole)
	}
	clear(m.blocks)
}

// fill writes words, and what there is of one at the end.
func fill(b []byte, v uint32) {
	for len(b) > 0 && len(b) < 4 {
		b[0], b, v = byte(v), b[1:], v>>8
	}
	if len(b) == 0 {
		return
	}
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	for done := 4; done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// duplicate returns a file of its own on the same memory.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var dup error
	if err := raw.Control(func(n uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, dup = syscall.Dup(int(n)); dup == nil {
			syscall.CloseOnExec(fd)
		}
	}); err != nil {
		return nil, err
	}
	if dup != nil {
		return nil, dup
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
