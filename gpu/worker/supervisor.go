package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"pgaccel/gpu/device"
)

// Phase says what a supervised worker does.
type Phase uint8

// The phases.
const (
	Starting Phase = iota // a process was started, or is about to be
	Running               // it answers
	None                  // there is no worker, and the next try is later
)

var phaseNames = [...]string{"starting", "running", "none"}

// String returns the phase as metrics and virtual tables spell it.
func (p Phase) String() string { return phaseNames[p] }

// State is a supervised worker's.
type State struct {
	Phase    Phase
	Reason   string // of None: "no NVIDIA driver: libcuda.so.1 not found"
	Since    time.Time
	Restarts int // processes that ended after they had answered
}

// String returns "running", "starting" or "none (reason)".
func (s State) String() string {
	if s.Phase == None && s.Reason != "" {
		return "none (" + s.Reason + ")"
	}
	return s.Phase.String()
}

// SupervisorOptions says what a Supervisor keeps running.
type SupervisorOptions struct {
	StartOptions

	// Started is called with every new client, one call at a time and before State is
	// Running: what was on an earlier one's devices is gone. nil is allowed.
	Started func(*Client)

	// The delay before a new try begins at MinDelay (0 is 0.5 s), doubles up to MaxDelay
	// (0 is a minute), and begins anew after a worker that lived for Healthy (0 is a minute).
	MinDelay, MaxDelay, Healthy time.Duration
}

// Supervisor keeps a worker running: it starts one, watches it, and starts another when it
// has ended.
type Supervisor struct {
	o      SupervisorOptions
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	state   State
	client  *Client
	changed chan struct{} // closed at every change of state
}

// Supervise starts a supervisor, which works until ctx ends or Close.
func Supervise(ctx context.Context, o SupervisorOptions) *Supervisor {
	if o.MinDelay <= 0 {
		o.MinDelay = 500 * time.Millisecond
	}
	if o.MaxDelay <= 0 {
		o.MaxDelay = time.Minute
	}
	if o.Healthy <= 0 {
		o.Healthy = time.Minute
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Supervisor{o: o, cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{})}
	s.state.Since = time.Now()
	go s.run(ctx)
	return s
}

// Client returns the client of the running worker, nil where there is none.
func (s *Supervisor) Client() *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// State returns what the worker does now.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Settled waits until the first try has ended one way or the other, or ctx has, and
// returns the state then.
func (s *Supervisor) Settled(ctx context.Context) State {
	for {
		s.mu.Lock()
		state, changed := s.state, s.changed
		s.mu.Unlock()
		if state.Phase != Starting {
			return state
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state
		case <-s.ended:
			return s.State()
		}
	}
}

// Close ends the worker and the supervisor.
func (s *Supervisor) Close() error {
	s.cancel()
	<-s.ended
	return nil
}

func (s *Supervisor) set(phase Phase, reason string, c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Phase == Running && phase != Running {
		s.state.Restarts++
	}
	s.state.Phase, s.state.Reason, s.state.Since = phase, reason, time.Now()
	s.client = c
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Supervisor) run(ctx context.Context) {
	defer close(s.ended)
	delay := s.o.MinDelay
	said := "" // the reason that was logged last: the same one is not logged every minute
	for {
		c, err := Start(ctx, s.o.StartOptions)
		if err == nil {
			began := time.Now()
			s.log(slog.LevelInfo, "the device's worker runs", "devices", len(c.Devices()))
			said = ""
			if s.o.Started != nil {
				s.o.Started(c)
			}
			s.set(Running, "", c)
			select {
			case <-c.Done():
			case <-ctx.Done():
			}
			err = c.Err()
			_ = c.Close()
			if time.Since(began) >= s.o.Healthy {
				delay = s.o.MinDelay
			}
		}
		if ctx.Err() != nil {
			s.set(None, "shut down", nil)
			return
		}
		reason := reasonOf(err)
		if reason != said {
			said = reason
			s.log(slog.LevelWarn, "no device", "reason", reason, "retry", delay)
		}
		s.set(None, reason, nil)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			s.set(None, "shut down", nil)
			return
		}
		delay = min(2*delay, s.o.MaxDelay)
		s.set(Starting, "", nil)
	}
}

// reasonOf returns an error for people: of a fault without the words that State says anyway.
func reasonOf(err error) string {
	var fault *device.Fault
	if !errors.As(err, &fault) {
		return err.Error()
	}
	if fault.Call != "" {
		return fault.Call + ": " + fault.Text
	}
	return fault.Text
}

func (s *Supervisor) log(level slog.Level, message string, args ...any) {
	if s.o.Log != nil {
		s.o.Log.Log(context.Background(), level, message, args...)
	}
}
