package proxy

import (
	"crypto/tls"
	"log/slog"
	"time"

	"pgaccel/internal/trace"
)

// Config sets up a Server.
type Config struct {
	// Listen are the addresses for clients: host:port, or the path of a Unix socket
	// (anything that contains a slash).
	Listen []string
	// ReusePort has the server take over the listeners of a process that listens on the same
	// addresses, and offer them to the next: one program takes over while another is drained.
	ReusePort bool
	// Databases are those that clients may ask for by name, Default is where all others go; nil refuses them.
	Databases map[string]*Database
	Default   *Database
	// TLS is offered to clients; nil answers N to SSLRequest.
	TLS *tls.Config
	// RequireTLS says whether clients that come over TCP without TLS are refused. nil
	// refuses them where TLS is set and the session's server leg has TLS.
	RequireTLS *bool
	Logger     *slog.Logger
	// MaxConnections refuses further clients with 53300; 0 is no limit.
	MaxConnections int
	Observer       Observer // may be nil
	// Shadow is the share, from 0 to 1, of the executions that could be answered from
	// the engine which the server answers instead, to compare both.
	Shadow float64
	// LogConnections logs clients that come, go, or get no session.
	LogConnections bool
	// SlowQueryLog is how long a statement has to take to be logged; nil logs none.
	SlowQueryLog *time.Duration
	// Tracer makes spans of statements; nil makes none.
	Tracer *trace.Tracer

	// MessageMemory bounds the bytes that all sessions together hold of messages of
	// clients that have come in part; 0 is 64 MiB. What does not fit is forwarded.
	MessageMemory int64

	// goroutines drives plaintext sessions by goroutines too, for tests.
	goroutines bool
	// loops is the number of event loops, 0 for one for every two cores.
	loops int
	// startup is startupTimeout where it is 0.
	startup time.Duration
}

// Observer is told what sessions do, for metrics. Its methods are called from many
// goroutines and must not block.
type Observer interface {
	SessionOpened()
	// SessionClosed gives the bytes that the session relayed from the client and
	// from the server.
	SessionClosed(fromClient, fromServer int64)
	// CancelRequested counts cancel requests; accelerated says that the query was
	// running here.
	CancelRequested(accelerated bool)
	// Answered counts executions that the engine was asked about. d is the time from
	// the message to the decision's end: the answer's first byte, or the release of
	// the message to Postgres.
	Answered(accelerated bool, d time.Duration)
	// Forwarded counts statements that the server runs for clients.
	Forwarded(statements int)
	// Served tells of a Query, or of a batch up to its Sync, that the server alone answered. d is the time from its
	// arrival to the end of the answer.
	Served(d time.Duration)
	// Refused counts clients that get no session.
	Refused(why Refusal)
}

// Refusal says why a client gets no session.
type Refusal string

// The refusals.
const (
	RefusedServer   Refusal = "server"   // it cannot be connected to
	RefusedLimit    Refusal = "limit"    // Config.MaxConnections
	RefusedShutdown Refusal = "shutdown" // sessions are ended
	RefusedTLS      Refusal = "tls"      // the client must use it
	RefusedDatabase Refusal = "database" // there is none of that name
)

type noObserver struct{}

func (noObserver) SessionOpened()               {}
func (noObserver) SessionClosed(int64, int64)   {}
func (noObserver) CancelRequested(bool)         {}
func (noObserver) Answered(bool, time.Duration) {}
func (noObserver) Forwarded(int)                {}
func (noObserver) Served(time.Duration)         {}
func (noObserver) Refused(Refusal)              {}

const (
	// startupTimeout is how long a client may take until its startup packet is
	// complete, as Postgres' authentication_timeout by default. From there on the
	// server's own authentication_timeout runs, as on a direct connection.
	startupTimeout = time.Minute
	// cancelTimeout bounds the delivery of one cancel request.
	cancelTimeout = 30 * time.Second
)
