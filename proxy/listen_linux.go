package proxy

import "golang.org/x/sys/unix"

// Sockets that listen on one address with SO_REUSEPORT are a group; the kernel gives each
// new connection to one of them, and those that wait in the line of one that closes are
// lost. So before a listener closes, a program of the group has new ones go to the second
// member, which is the newer process; where there is none, the kernel chooses as before.

func reusePort(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

// turnToOther sets the group's program.
func turnToOther(fd int) error {
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain == unix.AF_UNIX {
		return err // its file is the other's already
	}
	second := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(second)), Filter: &second[0]})
}

// turnBack removes a program that a process which has ended has left.
func turnBack(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_REUSEPORT_BPF, 0)
}
