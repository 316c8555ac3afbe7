package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// kind is what a frame says.
type kind uint8

const (
	kindInvalid kind = iota
	kindShare        // body: empty; the descriptor comes along
	kindAlloc        // device, bytes
	kindFree         // device, pointer
	kindCompile      // device, source
	kindRun          // device, batch; raw: the data of its OpWrites
	kindCancel       // body: empty; the id is that of another request
	kindReply        // outcome, and what was asked for; raw: the data of OpReads
	kinds
)

const (
	headerBytes = 24
	// maxBody bounds the packed part of a frame: the largest is a source with its headers,
	// or a batch with many pieces.
	maxBody = 64 << 20
	// maxRaw bounds a batch's bulk data. Columns go through a shared file, not through here.
	maxRaw = 4 << 30
	// eager is how much of a frame is allocated before its bytes have come.
	eager = 64 << 20
)

// frame is one message.
type frame struct {
	kind kind
	id   uint64
	body []byte
	raw  []byte
}

// errTooLarge is send's error for a frame of which nothing was sent.
var errTooLarge = errors.New("more data than one request may have")

// errFrame is the error of a frame that no build of this version sends.
func errFrame(format string, args ...any) error {
	return fmt.Errorf("malformed frame: "+format, args...)
}

func putHeader(b []byte, k kind, id uint64, body int, raw uint64) {
	_ = b[headerBytes-1]
	binary.LittleEndian.PutUint32(b, uint32(k))
	binary.LittleEndian.PutUint32(b[4:], uint32(body))
	binary.LittleEndian.PutUint64(b[8:], raw)
	binary.LittleEndian.PutUint64(b[16:], id)
}

// readFrame reads one frame. It returns io.EOF only where the stream ends between frames.
func readFrame(r io.Reader) (frame, error) { return readFrameTo(r, plainBytes) }

// readFrameTo is readFrame with the memory of raw from somewhere else.
func readFrameTo(r io.Reader, memory func(n int) []byte) (frame, error) {
	var h [headerBytes]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the stream ends within a frame's header: %w", err)
		}
		return frame{}, err
	}
	k := binary.LittleEndian.Uint32(h[:])
	body := binary.LittleEndian.Uint32(h[4:])
	raw := binary.LittleEndian.Uint64(h[8:])
	switch {
	case k == uint32(kindInvalid) || k >= uint32(kinds):
		return frame{}, errFrame("kind %d", k)
	case body > maxBody:
		return frame{}, errFrame("body of %d bytes, at most %d are allowed", body, maxBody)
	case raw > maxRaw:
		return frame{}, errFrame("%d bytes of data, at most %d are allowed", raw, int64(maxRaw))
	}
	f := frame{kind: kind(k), id: binary.LittleEndian.Uint64(h[16:])}
	var err error
	if f.body, err = readBytes(r, int(body), plainBytes); err == nil {
		f.raw, err = readBytes(r, int(raw), memory)
	}
	if err != nil {
		return frame{}, fmt.Errorf("the stream ends within a frame: %w", err)
	}
	return f, nil
}

func plainBytes(n int) []byte { return make([]byte, n) }

// readBytes reads n bytes. It does not believe a large n before that many bytes have come.
func readBytes(r io.Reader, n int, memory func(n int) []byte) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b := memory(min(n, eager))
	for at := 0; ; {
		m, err := io.ReadFull(r, b[at:])
		if at += m; err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if at == n {
			return b, nil
		}
		b = append(b, make([]byte, min(n-at, at))...)
	}
}

// link is one end of the socket: frames in both directions, and descriptors with them.
type link struct {
	conn *net.UnixConn
	in   *bufio.Reader

	fdMu sync.Mutex
	fds  []int // received, not yet taken

	out    sync.Mutex
	failed error // of a write that may have left half a frame
}

func newLink(conn *net.UnixConn) *link {
	l := &link{conn: conn}
	_ = conn.SetWriteBuffer(4 << 20) // fewer wakes for bulk data, as far as the system lets
	l.in = bufio.NewReaderSize(receiver{l}, 64<<10)
	return l
}

// receiver reads bytes and keeps the descriptors that come along.
type receiver struct{ l *link }

func (r receiver) Read(p []byte) (int, error) {
	var oob [64]byte // more than one SCM_RIGHTS message of a descriptor takes
	n, oobn, flags, _, err := r.l.conn.ReadMsgUnix(p, oob[:])
	if oobn > 0 {
		if err := r.l.keep(oob[:oobn]); err != nil {
			return 0, err
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return 0, errFrame("more file descriptors than a frame may have")
	}
	switch {
	case errors.Is(err, io.EOF) || err == nil && n == 0 && len(p) > 0:
		return 0, io.EOF // package net wraps it
	case err != nil:
		return max(n, 0), err
	}
	return n, nil
}

func (l *link) keep(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("control message: %w", err)
		}
		l.fdMu.Lock()
		l.fds = append(l.fds, fds...)
		l.fdMu.Unlock()
	}
	return nil
}

// takeFile returns the oldest descriptor that came and was not taken.
func (l *link) takeFile() (*os.File, error) {
	l.fdMu.Lock()
	defer l.fdMu.Unlock()
	if len(l.fds) == 0 {
		return nil, errFrame("a share without a file descriptor")
	}
	f := os.NewFile(uintptr(l.fds[0]), "shared")
	l.fds = l.fds[1:]
	return f, nil
}

// send writes one frame: body must have headerBytes free at its beginning. file may be nil.
func (l *link) send(k kind, id uint64, body []byte, raw [][]byte, file *os.File) error {
	var bytes uint64
	for _, r := range raw {
		bytes += uint64(len(r))
	}
	if len(body)-headerBytes > maxBody || bytes > maxRaw {
		return errTooLarge
	}
	putHeader(body, k, id, len(body)-headerBytes, bytes)
	l.out.Lock()
	defer l.out.Unlock()
	if l.failed != nil {
		return l.failed
	}
	err := l.write(body, raw, file)
	if err != nil {
		l.failed = err
	}
	return err
}

func (l *link) write(body []byte, raw [][]byte, file *os.File) error {
	if file != nil {
		// The descriptor goes with the first bytes that the socket takes.
		n, _, err := l.conn.WriteMsgUnix(body, unix.UnixRights(int(file.Fd())), nil)
		if err != nil {
			return err
		}
		body = body[n:]
	}
	if len(raw) == 0 {
		if len(body) == 0 {
			return nil
		}
		_, err := l.conn.Write(body)
		return err
	}
	buffers := make(net.Buffers, 0, 1+len(raw))
	buffers = append(buffers, body)
	buffers = append(buffers, raw...)
	_, err := buffers.WriteTo(l.conn)
	return err
}

// close ends the connection and drops descriptors that nobody took.
func (l *link) close() {
	_ = l.conn.Close()
	l.fdMu.Lock()
	for _, fd := range l.fds {
		_ = unix.Close(fd)
	}
	l.fds = nil
	l.fdMu.Unlock()
}
