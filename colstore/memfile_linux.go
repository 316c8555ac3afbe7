package colstore

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memoryFile is an anonymous file in memory (memfd_create), mapped in pieces. A
// worker process can be handed its descriptor and map the same pages.
type memoryFile struct {
	open bool
	fd   int
	size int64
}

// create makes the file, unless that has happened.
func (f *memoryFile) create() error {
	if f.open {
		return nil
	}
	fd, err := unix.MemfdCreate("pgaccel-columns", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	f.open, f.fd = true, fd
	return nil
}

// duplicate returns another descriptor of the file.
func (f *memoryFile) duplicate() (*os.File, error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "pgaccel-columns"), nil
}

// grow appends n bytes to the file and maps them.
func (f *memoryFile) grow(n int) ([]byte, error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	if err := unix.Ftruncate(f.fd, f.size+int64(n)); err != nil {
		return nil, os.NewSyscallError("ftruncate", err)
	}
	mem, err := unix.Mmap(f.fd, f.size, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	// A core dump is to hold neither the tables' data nor gigabytes. Failure only costs that.
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP)
	f.size += int64(n)
	return mem, nil
}

func (f *memoryFile) close() {
	if f.open {
		unix.Close(f.fd)
		*f = memoryFile{}
	}
}

// returnPages gives the whole pages within mem back to the system; they read as
// zeros afterwards. Failure only costs memory.
func returnPages(mem []byte) {
	page := uintptr(os.Getpagesize())
	base := uintptr(unsafe.Pointer(&mem[0]))
	from, to := (base+page-1)&^(page-1), (base+uintptr(len(mem)))&^(page-1)
	if from < to {
		_ = unix.Madvise(mem[from-base:to-base], unix.MADV_REMOVE)
	}
}

func unmap(mem []byte) { _ = unix.Munmap(mem) }
