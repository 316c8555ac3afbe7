package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// With ReusePort two processes share one listening socket for a while: the old one hands
// its descriptor to the new one (SCM_RIGHTS), so there is one line of waiting connections,
// and none is lost when the old one closes its copy. SO_REUSEPORT has a line for each
// socket, and the kernel resets what waits in the line of the one that closes.
//
// A process offers its listener on an abstract Unix socket named by the address. That one
// is handed over too, so whichever of them still runs offers both to the next. A message
// is one byte with two descriptors: the listener's, the offer's.

const (
	handOverTimeout = 5 * time.Second
	handOverPause   = 10 * time.Millisecond
)

// sharedListener is a listener that other processes may have too.
type sharedListener struct {
	net.Listener
	offer *net.UnixListener
	name  *net.UnixAddr // of the offer
	path  string        // the file of a Unix socket, or empty
	once  sync.Once
}

// listenShared takes over the listener of a process that offers it, else it opens one. Where another process ends
// or begins just then, it looks again.
func listenShared(ctx context.Context, address string) (net.Listener, error) {
	h := &sharedListener{}
	if isPath(address) {
		path, err := filepath.Abs(address)
		if err != nil {
			return nil, err
		}
		address, h.path = path, path
	}
	var err error
	if h.name, err = offerOf(address); err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	for until := time.Now().Add(handOverTimeout); ; time.Sleep(handOverPause) {
		if err = h.takeOrOpen(ctx, address); err == nil {
			break
		}
		if !passes(err) || ctx.Err() != nil || time.Now().After(until) {
			return nil, err
		}
	}
	go h.serve()
	return h, nil
}

func (h *sharedListener) takeOrOpen(ctx context.Context, address string) error {
	if err := h.take(); err != nil {
		return fmt.Errorf("listen %s: take over the listener: %w", address, err)
	}
	if h.Listener == nil {
		return h.open(ctx, address)
	}
	return nil
}

// errOffered is that another process has come first.
var errOffered = errors.New("another process offers it")

// passes reports whether an error is one of the moment: a process that offered the listener has ended before it gave it, or
// another one has just begun.
func passes(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, errOffered)
}

// offerOf names the abstract socket of an address, which may be longer than such a name. A file is named by its folder's
// number: where containers share a network, they share these names, but not what paths mean.
func offerOf(address string) (*net.UnixAddr, error) {
	if isPath(address) {
		var folder unix.Stat_t
		if err := unix.Stat(filepath.Dir(address), &folder); err != nil {
			return nil, err
		}
		address = fmt.Sprintf("%d:%d/%s", folder.Dev, folder.Ino, filepath.Base(address))
	}
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@pgaccel-%x", sha256.Sum256([]byte(address)))}, nil
}

// open listens where nobody does. The offer comes first: whoever has it is the only one that opens the
// listener, or removes its file.
func (h *sharedListener) open(ctx context.Context, address string) (err error) {
	if h.offer, err = net.ListenUnix("unix", h.name); errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen %s: %w: %w", address, errOffered, err)
	} else if err != nil {
		return fmt.Errorf("offer the listener of %s: %w", address, err)
	}
	if h.Listener, err = listenOwn(ctx, address); err != nil {
		h.offer.Close()
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%w; a pgaccel there hands its listener over where both have --reuse-port and the same address, spelled the same", err)
		}
		return err
	}
	if l, ok := h.Listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
	return nil
}

// take asks the process that offers this listener. Where there is none, h stays empty.
func (h *sharedListener) take() error {
	conn, err := net.DialUnix("unix", nil, h.name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := sameUser(conn); err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(handOverTimeout))
	rights := make([]byte, syscall.CmsgSpace(2*4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return err
	}
	files, err := descriptors(rights[:n])
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	if len(files) != 2 {
		return fmt.Errorf("%d descriptors, not 2", len(files))
	}
	l, err := net.FileListener(files[0])
	if err != nil {
		return err
	}
	offer, err := net.FileListener(files[1])
	if err != nil {
		l.Close()
		return err
	}
	h.Listener, h.offer = l, offer.(*net.UnixListener)
	return nil
}

// descriptors returns what came with a message.
func descriptors(rights []byte) (files []*os.File, err error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	for _, m := range messages {
		fds, ferr := syscall.ParseUnixRights(&m)
		if ferr != nil {
			err = ferr
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return files, err
}

// serve gives the listener to processes that ask, until Close.
func (h *sharedListener) serve() {
	for {
		conn, err := h.offer.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(100 * time.Millisecond) // out of descriptors, most likely
			continue
		}
		h.give(conn)
	}
}

func (h *sharedListener) give(conn *net.UnixConn) {
	defer conn.Close()
	if sameUser(conn) != nil {
		return
	}
	conn.SetDeadline(time.Now().Add(handOverTimeout))
	control(h.Listener.(syscall.Conn), func(listener int) error {
		return control(h.offer, func(offer int) error {
			_, _, err := conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(listener, offer), nil)
			return err // the one that asked reports it
		})
	})
}

// Close closes this process's copy. The file of a Unix socket goes with the last one, which can have the
// name of the offer for itself; with that nobody makes a new file before the old one is removed.
func (h *sharedListener) Close() (err error) {
	h.once.Do(func() {
		err = h.Listener.Close()
		h.offer.Close()
		if h.path == "" {
			return
		}
		if last, lerr := net.ListenUnix("unix", h.name); lerr == nil {
			os.Remove(h.path)
			last.Close()
		}
	})
	return err
}

// sameUser says no to another user's process: sockets without a file have no permissions.
func sameUser(conn *net.UnixConn) error {
	var peer *unix.Ucred
	err := control(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err == nil && peer.Uid != uint32(os.Geteuid()) {
		err = fmt.Errorf("the process that listens is of the user with id %d", peer.Uid)
	}
	return err
}

// control runs f on the descriptor of a socket.
func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}
