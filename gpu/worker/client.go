package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/internal/bulk"
)

// Client is a device.Executor whose devices another process has. After the connection's
// end every call returns the same *device.Fault of kind Lost.
type Client struct {
	link    *link
	devices []device.Info
	limit   time.Duration // for one request; 0 is none

	transfer transferBuffer

	next atomic.Uint64
	done chan struct{} // closed when the connection is lost or closed

	mu      sync.Mutex
	waiting map[uint64]chan frame // each is sent at most one frame
	fault   *device.Fault         // why done is closed

	// explain, where it is not nil, says more about a lost connection: how the process ended.
	explain func(error) string
	// stop, where it is not nil, ends the process.
	stop func()
	pid  int // of the process, 0 where Start did not start it
}

var _ device.Executor = (*Client)(nil)

// NewClient greets a server. It fails with a *device.Fault: that of the server where it
// has no device, or one that says what is wrong with the other side. It owns conn.
func NewClient(conn *net.UnixConn) (*Client, error) {
	c, err := newClient(conn)
	if err != nil {
		return nil, err
	}
	go c.read()
	return c, nil
}

func newClient(conn *net.UnixConn) (*Client, error) {
	l := newLink(conn)
	fail := func(fault *device.Fault) (*Client, error) {
		l.close()
		return nil, fault
	}
	// A server that refuses may have gone without reading: what it said still counts.
	writeErr := greeting{Version: Version(), Build: Build()}.write(conn)
	theirs, err := readGreeting(l.in)
	switch {
	case err != nil && writeErr != nil:
		return fail(&device.Fault{Kind: device.FaultLost, Call: "greeting", Text: writeErr.Error()})
	case err != nil:
		return fail(&device.Fault{Kind: device.FaultLost, Call: "greeting", Text: text(err)})
	}
	if err := theirs.fits(); err != nil {
		return fail(&device.Fault{Kind: device.FaultUnavailable, Call: "greeting", Text: err.Error()})
	}
	if theirs.Fault != nil {
		return fail(theirs.Fault)
	}
	return &Client{
		link:    l,
		devices: theirs.Devices,
		done:    make(chan struct{}),
		waiting: map[uint64]chan frame{},
	}, nil
}

// text says what an error of the socket means.
func text(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return "the worker closed the connection"
	}
	return err.Error()
}

// Devices implements device.Executor. Free is as it was when the worker started.
func (c *Client) Devices() []device.Info { return c.devices }

// Done is closed when the connection is lost or closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why Done is closed; nil while it is not.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return c.fault
	default:
		return nil
	}
}

// Close ends the connection, and with it the worker process of Start.
func (c *Client) Close() error {
	c.lose(&device.Fault{Kind: device.FaultLost, Text: "the connection to the worker was closed"})
	if c.stop != nil {
		c.stop()
	}
	return nil
}

// lose ends the connection for a reason. The first reason stays.
func (c *Client) lose(fault *device.Fault) {
	c.mu.Lock()
	if c.fault == nil {
		c.fault = fault
		close(c.done)
	}
	c.mu.Unlock()
	c.link.close()
	c.transfer.close()
}

// read hands replies to those who wait for them.
func (c *Client) read() {
	for {
		f, err := readFrameTo(c.link.in, bulk.Bytes)
		if err == nil && f.kind != kindReply {
			err = errFrame("a server's frame of kind %d", f.kind)
		}
		if err != nil {
			select {
			case <-c.done: // closed on this side
				return
			default:
			}
			says := text(err)
			if c.explain != nil {
				says = c.explain(err)
			}
			c.lose(&device.Fault{Kind: device.FaultLost, Text: says})
			return
		}
		// A lost device is everybody's, and known before other replies are handed out.
		if outcome, _ := unpackError(&unpacker{b: f.body}); device.KindOf(outcome) == device.FaultLost {
			var fault *device.Fault
			errors.As(outcome, &fault)
			c.lose(fault)
			return
		}
		c.mu.Lock()
		w := c.waiting[f.id]
		delete(c.waiting, f.id)
		c.mu.Unlock()
		if w == nil {
			c.lose(&device.Fault{Kind: device.FaultLost, Text: errFrame("a reply that nobody waits for").Error()})
			return
		}
		w <- f
	}
}

// ask sends a request and waits for its reply's body after the outcome, and its data.
// Where ctx ends before, the worker is told; ask returns when it has answered all the same.
func (c *Client) ask(ctx context.Context, k kind, p *packer, raw [][]byte, file *os.File) (*unpacker, []byte, error) {
	id := c.next.Add(1)
	w := make(chan frame, 1)
	c.mu.Lock()
	if c.fault != nil {
		c.mu.Unlock()
		return nil, nil, c.fault
	}
	c.waiting[id] = w
	c.mu.Unlock()
	var late <-chan time.Time
	if c.limit > 0 {
		timer := time.NewTimer(c.limit)
		defer timer.Stop()
		late = timer.C
	}
	if err := c.link.send(k, id, p.b, raw, file); errors.Is(err, errTooLarge) {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		return nil, nil, &device.Fault{Call: "send", Text: err.Error()}
	} else if err != nil {
		// The reader knows better why the other side is gone, where it is.
		if !errors.Is(err, net.ErrClosed) {
			select {
			case <-c.done:
			case <-time.After(time.Second):
			}
		}
		c.lose(&device.Fault{Kind: device.FaultLost, Call: "send", Text: err.Error()})
		return nil, nil, c.fault
	}
	canceled := ctx.Done()
	for {
		select {
		case f := <-w:
			return c.outcome(ctx, f)
		case <-canceled:
			canceled = nil
			_ = c.link.send(kindCancel, id, newPacker(0).b, nil, nil)
		case <-late:
			c.lose(&device.Fault{Kind: device.FaultLost, Text: fmt.Sprintf("the worker has not answered for %v", c.limit)})
			if c.stop != nil {
				c.stop()
			}
		case <-c.done:
			select {
			case f := <-w: // it had been answered
				return c.outcome(ctx, f)
			default:
				return nil, nil, c.fault
			}
		}
	}
}

// outcome takes a reply apart.
func (c *Client) outcome(ctx context.Context, f frame) (*unpacker, []byte, error) {
	u := &unpacker{b: f.body}
	err, malformed := unpackError(u)
	if malformed != nil {
		c.lose(&device.Fault{Kind: device.FaultLost, Text: malformed.Error()})
		return nil, nil, c.fault
	}
	var fault *device.Fault
	switch {
	case err == nil:
		return u, f.raw, nil
	case errors.As(err, &fault):
		return nil, nil, fault
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	}
	// Nobody here cancelled it: the server is ending.
	c.lose(&device.Fault{Kind: device.FaultLost, Text: "the worker is ending"})
	return nil, nil, c.fault
}

// answer is what ask returns for a reply of one number.
func (c *Client) answer(ctx context.Context, k kind, p *packer, file *os.File) (uint64, error) {
	u, _, err := c.ask(ctx, k, p, nil, file)
	if err != nil {
		return 0, err
	}
	v := uint64(0)
	if k != kindFree {
		v = u.num()
	}
	return v, c.check(u.end("a reply"))
}

// check turns a malformed reply into the connection's end.
func (c *Client) check(err error) error {
	if err != nil {
		c.lose(&device.Fault{Kind: device.FaultLost, Text: err.Error()})
		return c.fault
	}
	return nil
}

// Share implements device.Executor. f may be closed afterwards.
func (c *Client) Share(f *os.File) (device.File, error) {
	v, err := c.answer(context.Background(), kindShare, newPacker(0), f)
	return device.File(v), err
}

// Alloc implements device.Executor.
func (c *Client) Alloc(dev int, bytes int64) (device.Pointer, error) {
	p := newPacker(16)
	p.num(uint64(dev))
	p.num(uint64(bytes))
	v, err := c.answer(context.Background(), kindAlloc, p, nil)
	return device.Pointer(v), err
}

// Free implements device.Executor.
func (c *Client) Free(dev int, ptr device.Pointer) error {
	p := newPacker(16)
	p.num(uint64(dev))
	p.num(uint64(ptr))
	_, err := c.answer(context.Background(), kindFree, p, nil)
	return err
}

// Compile implements device.Executor.
func (c *Client) Compile(ctx context.Context, dev int, s device.Source) (device.Module, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p := newPacker(len(s.Code) + 1024)
	p.num(uint64(dev))
	if err := packSource(p, &s); err != nil {
		return 0, &device.Fault{Kind: device.FaultCompile, Text: err.Error()}
	}
	v, err := c.answer(ctx, kindCompile, p, nil)
	return device.Module(v), err
}

// Run implements device.Executor. The batch's slices must not change until it returns.
func (c *Client) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, done := c.transfer.batch(b, c.Share)
	defer done()
	p := newPacker(64 * (1 + len(b.Commands)))
	p.num(uint64(dev))
	raw := packBatch(p, b)
	u, data, err := c.ask(ctx, kindRun, p, raw, nil)
	if err != nil {
		return nil, err
	}
	r, err := unpackReply(u, data)
	if err := c.check(err); err != nil {
		return nil, err
	}
	return r, ctx.Err()
}
