package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/internal/bulk"
)

// requestsTimeout is how long Serve waits for running requests at its end.
const requestsTimeout = 3 * time.Second

// Serve answers the requests of one connection from ex until the other side closes it,
// which is no error, or a frame is malformed. Requests run side by side, each in a goroutine of
// its own. After a fault of kind Lost, which it replies first, it returns that fault: the
// process is to end, so that a new one starts with nothing of the old one's. Serve closes
// the connection and waits a few seconds for running requests; it does not close ex.
func Serve(conn *net.UnixConn, ex device.Executor) error {
	l := newLink(conn)
	defer l.close()
	theirs, err := readGreeting(l.in)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if err := (greeting{Version: Version(), Build: Build(), Devices: ex.Devices()}).write(conn); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if err := theirs.fits(); err != nil {
		return err // the client read ours, and says the same
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, reuse := ex.(*executor)
	s := &server{link: l, ex: ex, reuse: reuse, ctx: ctx, running: map[uint64]context.CancelFunc{}}
	err = s.loop()
	cancel()
	ended := make(chan struct{})
	go func() { s.requests.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(requestsTimeout): // a kernel that does not end ends with the process
		err = errors.Join(err, errors.New("requests are still running"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return s.lost
	}
	if err == io.EOF || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Refuse greets the other side with a fault instead of devices: there is nothing to serve.
func Refuse(conn *net.UnixConn, fault *device.Fault) error {
	defer conn.Close()
	if err := (greeting{Version: Version(), Build: Build(), Fault: fault}).write(conn); err != nil {
		return err
	}
	// Closing with unread bytes may take the greeting away from a peer that has not read it yet.
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	return nil
}

// Inherited returns the connection that Start hands to a worker: file descriptor 3.
func Inherited() (*net.UnixConn, error) {
	f := os.NewFile(3, "socket")
	if f == nil {
		return nil, errors.New("no socket on file descriptor 3")
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("no socket on file descriptor 3: %w (pgaccel starts this program)", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("file descriptor 3 is no Unix socket")
	}
	return conn, nil
}

// server is one connection's.
type server struct {
	link     *link
	ex       device.Executor
	ctx      context.Context
	requests sync.WaitGroup
	reuse    bool // ex has replies' data by bulk.Bytes

	mu      sync.Mutex
	running map[uint64]context.CancelFunc // of requests that can be cancelled
	lost    *device.Fault
}

func (s *server) loop() error {
	for {
		f, err := readFrameTo(s.link.in, bulk.Bytes)
		if err != nil {
			return err
		}
		if err := s.dispatch(f); err != nil {
			return err
		}
	}
}

// dispatch starts a request. It returns an error where the frame is malformed.
func (s *server) dispatch(f frame) error {
	began := time.Now()
	u := &unpacker{b: f.body}
	switch f.kind {
	case kindShare:
		file, err := s.link.takeFile()
		if err != nil {
			return err
		}
		s.start(f.id, func(_ context.Context, p *packer) ([][]byte, error) {
			defer file.Close()
			shared, err := s.ex.Share(file)
			packError(p, err)
			p.num(uint64(shared))
			return nil, err
		})
	case kindAlloc:
		dev, bytes := int(u.num32()), u.num()
		if err := u.end("an allocation"); err != nil {
			return err
		}
		s.start(f.id, func(_ context.Context, p *packer) ([][]byte, error) {
			ptr, err := s.ex.Alloc(dev, int64(bytes))
			packError(p, err)
			p.num(uint64(ptr))
			return nil, err
		})
	case kindFree:
		dev, ptr := int(u.num32()), device.Pointer(u.num())
		if err := u.end("a release"); err != nil {
			return err
		}
		s.start(f.id, func(_ context.Context, p *packer) ([][]byte, error) {
			err := s.ex.Free(dev, ptr)
			packError(p, err)
			return nil, err
		})
	case kindCompile:
		dev := int(u.num32())
		source, err := unpackSource(u)
		if err != nil {
			return err
		}
		s.start(f.id, func(ctx context.Context, p *packer) ([][]byte, error) {
			m, err := s.ex.Compile(ctx, dev, source)
			packError(p, err)
			p.num(uint64(m))
			return nil, err
		})
	case kindRun:
		dev := int(u.num32())
		batch, err := unpackBatch(u, f.raw)
		if err != nil {
			return err
		}
		s.start(f.id, func(ctx context.Context, p *packer) (raw [][]byte, err error) {
			reply, err := s.ex.Run(ctx, dev, batch)
			bulk.Done(f.raw)
			packError(p, err)
			if err == nil {
				reply.Took = time.Since(began)
				raw = packReply(p, reply)
			}
			return raw, err
		})
	case kindCancel:
		s.mu.Lock()
		if cancel := s.running[f.id]; cancel != nil {
			cancel()
		}
		s.mu.Unlock()
	default:
		return errFrame("a client's frame of kind %d", f.kind)
	}
	return nil
}

// start runs a request and sends its reply. What do packs after an error is cut off.
func (s *server) start(id uint64, do func(ctx context.Context, p *packer) ([][]byte, error)) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.running[id] = cancel
	s.mu.Unlock()
	s.requests.Go(func() {
		p := newPacker(64)
		raw, err := do(ctx, p)
		if err != nil {
			p = newPacker(64)
			packError(p, err)
		}
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		cancel()
		sendErr := s.link.send(kindReply, id, p.b, raw, nil)
		if s.reuse {
			for _, b := range raw {
				bulk.Done(b)
			}
		}
		if errors.Is(sendErr, errTooLarge) {
			p = newPacker(64)
			packError(p, sendErr)
			sendErr = s.link.send(kindReply, id, p.b, nil, nil)
		}
		var fault *device.Fault
		if errors.As(err, &fault) && fault.Kind == device.FaultLost {
			s.mu.Lock()
			s.lost = fault
			s.mu.Unlock()
			_ = s.link.conn.CloseRead() // ends the loop
		} else if sendErr != nil {
			_ = s.link.conn.CloseRead()
		}
	})
}
