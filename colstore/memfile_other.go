//go:build !linux

package colstore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile is, outside Linux, plain anonymous memory: no other process can map
// it, everything else is the same.
type memoryFile struct{}

func (f *memoryFile) grow(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return mem, nil
}

func (f *memoryFile) duplicate() (*os.File, error) { return nil, errors.ErrUnsupported }

func (f *memoryFile) close() {}

func returnPages([]byte) {}

func unmap(mem []byte) { _ = unix.Munmap(mem) }
