package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
	"pgaccel/internal/subprocess"
)

// programs are the workers' names.
var programs = map[device.Kind]string{device.CUDA: "pgaccel-gpu", device.Emulator: "pgaccel-gpu-emu"}

// Find returns the path of the worker for a kind of device: beside this executable, or on
// PATH. Its error is a *device.Fault of kind Unavailable.
func Find(k device.Kind) (string, error) {
	name, ok := programs[k]
	if !ok {
		return "", &device.Fault{Kind: device.FaultUnavailable, Text: fmt.Sprintf("%q is no kind of device", string(k))}
	}
	beside := "this program"
	if self, err := os.Executable(); err == nil {
		beside = filepath.Base(self)
		path := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", &device.Fault{Kind: device.FaultUnavailable, Text: fmt.Sprintf("%s not found beside %s or on PATH", name, beside)}
}

// StartOptions says which worker to start, and how.
type StartOptions struct {
	Path string      // of the program; empty: what Find says for Kind
	Kind device.Kind // empty: device.CUDA
	Args []string
	Env  []string     // added to this process' environment
	Log  *slog.Logger // what the worker writes to its standard error and output; nil: nothing is logged

	// Timeout bounds the time from the program's start to its greeting, which includes the
	// driver's initialisation. 0 is a minute.
	Timeout time.Duration
	// Limit bounds one request: a worker that has not answered after it is taken for hung,
	// and killed. 0 is two minutes.
	Limit time.Duration
}

// stopTimeout is how long a worker may take to end after its socket was closed.
const stopTimeout = 5 * time.Second

// Start starts a worker process and greets it. The error is a *device.Fault: Unavailable
// where the program is missing, cannot run here, or has no device, with the reason in the
// words of the system or the driver. The process ends with the Client, or with this process.
func Start(ctx context.Context, o StartOptions) (*Client, error) {
	if o.Kind == "" {
		o.Kind = device.CUDA
	}
	if o.Path == "" {
		path, err := Find(o.Kind)
		if err != nil {
			return nil, err
		}
		o.Path = path
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.Limit <= 0 {
		o.Limit = 2 * time.Minute
	}
	unavailable := func(err error) (*Client, error) {
		return nil, &device.Fault{Kind: device.FaultUnavailable, Text: err.Error()}
	}
	ours, theirs, err := socketpair()
	if err != nil {
		return unavailable(err)
	}
	p, err := spawn(o, theirs)
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		var path *fs.PathError
		if errors.As(err, &path) {
			err = fmt.Errorf("%s: %w", path.Path, path.Err)
		}
		return unavailable(err)
	}

	// The greeting ends early when the process does, for its end of the socket closes.
	detach := context.AfterFunc(ctx, func() { _ = ours.Close() })
	_ = ours.SetDeadline(time.Now().Add(o.Timeout))
	c, err := newClient(ours)
	if !detach() {
		if err == nil {
			c.link.close()
		}
		p.kill()
		return nil, ctx.Err()
	}
	var fault *device.Fault
	if errors.As(err, &fault) && fault.Kind == device.FaultLost {
		if strings.Contains(fault.Text, os.ErrDeadlineExceeded.Error()) {
			err = fmt.Errorf("%s did not start within %v", p.name, o.Timeout)
		} else {
			p.ended(2 * time.Second) // what it said last, and how it ended
			err = errors.New(p.reason(fault.Text))
		}
		p.kill()
		return unavailable(err)
	}
	if err != nil {
		p.kill()
		return nil, err
	}
	_ = ours.SetDeadline(time.Time{})
	c.limit = o.Limit
	c.stop = p.stop
	c.pid = p.cmd.Process.Pid
	c.explain = func(err error) string {
		p.ended(2 * time.Second)
		reason := p.reason(text(err)) // before the end that is made for it here
		p.kill()
		return reason
	}
	go c.read()
	return c, nil
}

// socketpair returns both ends of a stream socket; the other end is for a child.
func socketpair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "worker")
	f := os.NewFile(uintptr(fds[0]), "worker")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}

// process is a worker that was started.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output was read
	last lines
	log  *slog.Logger
}

// spawn starts the program with the socket as file descriptor 3.
func spawn(o StartOptions, socket *os.File) (*process, error) {
	p := &process{name: filepath.Base(o.Path), done: make(chan struct{}), log: o.Log}
	p.cmd = exec.Command(o.Path, o.Args...)
	p.cmd.Env = append(os.Environ(), o.Env...)
	p.cmd.ExtraFiles = []*os.File{socket}
	// A group of its own: an interrupt at the terminal is pgaccel's to handle.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in // gorgonia.org/cu says on its output why it ends
	err = subprocess.Start(p.cmd, syscall.SIGKILL)
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	waited := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(waited) }()
	go func() {
		defer close(p.done)
		defer out.Close()
		read := make(chan struct{})
		go func() { defer close(read); p.read(out) }()
		<-waited
		_ = out.SetReadDeadline(time.Now().Add(time.Second)) // a child of its own may hold the pipe
		<-read
	}()
	return p, nil
}

// read logs the process' output, and keeps its end, until the process has ended.
func (p *process) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 4096) // longer lines come in pieces
	for {
		line, _, err := r.ReadLine()
		if s := strings.TrimSpace(string(line)); s != "" {
			p.last.add(s)
			if p.log != nil {
				p.log.Info(p.name+": "+s, "pid", p.cmd.Process.Pid)
			}
		}
		if err != nil {
			return
		}
	}
}

// ended waits until the process has ended, at most for d.
func (p *process) ended(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// stop waits for the process to end by itself, as it does when its socket is closed.
func (p *process) stop() {
	if !p.ended(stopTimeout) {
		p.kill()
		p.ended(stopTimeout)
	}
}

// reason says why the process is gone: by what it wrote last, and how it ended; otherwise
// is for a process that did neither.
func (p *process) reason(otherwise string) string {
	text := p.last.String()
	if known := driverReason(text); known != "" {
		return known
	}
	select {
	case <-p.done:
	default:
		return p.name + ": " + otherwise
	}
	state := "ended"
	if s := p.cmd.ProcessState; s != nil {
		state = "ended: " + s.String()
	}
	if text == "" {
		return p.name + " " + state
	}
	return fmt.Sprintf("%s %s: %s", p.name, state, text)
}

// lines keeps the last lines of an output. Of a Go program's crash it keeps what it was and,
// where C code crashed, the function that was called; not the trace and the registers.
type lines struct {
	mu      sync.Mutex
	last    []string
	crashed bool
	signal  bool // the crash was one of C code, whose function is not known yet
}

// linesKept is enough for a driver's complaint, and not for a crash's whole trace.
const linesKept = 8

var (
	crashSignal = regexp.MustCompile(`^SIG[A-Z0-9]+: `)
	crashInside = regexp.MustCompile(`^\[signal (SIG[A-Z0-9]+): `)
	crashCall   = regexp.MustCompile(`\._Cfunc_(\w+)\(`) // cgo's name for a call of C
)

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.crashed:
		if m := crashInside.FindStringSubmatch(s); m != nil && strings.HasPrefix(l.last[len(l.last)-1], "fatal error: ") {
			l.last[len(l.last)-1] = m[1] // the error's text is only that there was one
			l.signal = true
		} else if m := crashCall.FindStringSubmatch(s); m != nil && l.signal {
			l.last[len(l.last)-1] += " in " + m[1]
			l.signal = false
		}
		return
	case strings.HasPrefix(s, "SIGABRT: ") && len(l.last) > 0:
		// The C library or C++ said why right before.
		l.last = l.last[len(l.last)-1:]
		l.crashed, l.signal = true, true
	case crashSignal.MatchString(s):
		l.last, l.crashed, l.signal = l.last[:0], true, true
	case strings.HasPrefix(s, "panic: "), strings.HasPrefix(s, "fatal error: "):
		l.last, l.crashed = l.last[:0], true
	}
	if len(l.last) == linesKept {
		l.last = l.last[1:]
	}
	l.last = append(l.last, s)
}

// String joins the lines.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "; ")
}
