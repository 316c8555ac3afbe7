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

// Listener opens a listener. With reuse another process may have it at the same time: how a
// program is exchanged while clients come.
func Listener(ctx context.Context, address string, reuse bool) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil && !isPath(address) {
		return nil, fmt.Errorf("%w: want host:port, such as 127.0.0.1:6432, or the path of a Unix socket", err)
	}
	if reuse {
		return listenShared(ctx, address)
	}
	return listenOwn(ctx, address)
}

// isPath reports whether an address is the path of a Unix socket.
func isPath(address string) bool { return strings.Contains(address, "/") }

// listenOwn opens a listener where nobody else has one.
func listenOwn(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	if !isPath(address) {
		return lc.Listen(ctx, "tcp", address)
	}
	// A socket file left by a process that ended hard is in the way; one that
	// somebody listens on is not ours to remove.
	if _, err := os.Stat(address); err == nil {
		c, err := net.DialTimeout("unix", address, time.Second)
		if err == nil {
			c.Close()
			return nil, fmt.Errorf("listen unix %s: %w", address, syscall.EADDRINUSE)
		}
		os.Remove(address)
	}
	l, err := lc.Listen(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(address, 0o777); err != nil { // Postgres' unix_socket_permissions by default
		l.Close()
		return nil, err
	}
	return l, nil
}
