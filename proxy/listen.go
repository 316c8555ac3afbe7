package proxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// listen opens a listener. With reuse another process may listen on the same address
// at the same time: how a program is exchanged while clients come.
func listen(ctx context.Context, address string, reuse bool) (net.Listener, error) {
	if isPath(address) {
		return listenUnix(ctx, address, reuse)
	}
	var lc net.ListenConfig
	if reuse {
		lc.Control = func(_, _ string, c syscall.RawConn) (err error) {
			if cerr := c.Control(func(fd uintptr) { err = reusePort(int(fd)) }); cerr != nil {
				return cerr
			}
			return err
		}
	}
	l, err := lc.Listen(ctx, "tcp", address)
	if err == nil && reuse {
		control(l, turnBack)
	}
	return l, err
}

// isPath reports whether an address is the path of a Unix socket.
func isPath(address string) bool { return strings.Contains(address, "/") }

// ListenTCP opens a listener for something else beside those of clients.
func ListenTCP(ctx context.Context, address string, reuse bool) (net.Listener, error) {
	return listen(ctx, address, reuse)
}

// control runs f on a listener's descriptor.
func control(l net.Listener, f func(fd int) error) error {
	sc, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	c, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	cerr := c.Control(func(fd uintptr) { err = f(int(fd)) })
	if cerr != nil {
		return cerr
	}
	return err
}

// unixListener is a socket whose file may have become another process's.
type unixListener struct {
	*net.UnixListener
	path string
	file os.FileInfo
}

// Close removes the file where it is still this socket's.
func (l *unixListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
		os.Remove(l.path)
	}
	return l.UnixListener.Close()
}

func listenUnix(ctx context.Context, path string, reuse bool) (net.Listener, error) {
	// A socket file left by a process that ended hard is in the way; one that
	// somebody listens on is not ours to remove.
	if _, err := os.Stat(path); err == nil && !reuse {
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			c.Close()
			return nil, fmt.Errorf("listen unix %s: address already in use", path)
		}
		os.Remove(path)
	}
	at := path
	if reuse {
		// The file takes the place of the other's at once: clients find one of both.
		at = fmt.Sprintf("%s.%d", path, os.Getpid())
		os.Remove(at)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", at)
	if err != nil {
		return nil, err
	}
	u := &unixListener{UnixListener: l.(*net.UnixListener), path: path}
	u.SetUnlinkOnClose(false)
	err = os.Chmod(at, 0o777) // Postgres' unix_socket_permissions by default
	if err == nil && at != path {
		err = os.Rename(at, path)
	}
	if err == nil {
		u.file, err = os.Lstat(path)
	}
	if err != nil {
		u.UnixListener.Close()
		os.Remove(at)
		return nil, err
	}
	return u, nil
}

// turnAway has new connections go to another process that listens on the same address,
// and reports whether some may still come here for a moment.
func (s *Server) turnAway() bool {
	for _, l := range s.listeners {
		if err := control(l, turnToOther); err != nil {
			s.log.Debug("new connections are not turned to another process before the listener closes", "error", err)
		}
	}
	return len(s.listeners) > 0
}
