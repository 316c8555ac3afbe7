package replica

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// barrier brings the stream's position to where queries wait for it. Left alone,
// the server tells its position when it has nothing more to decode, which may be
// never, and sends only what is flushed: an asynchronous commit, visible already,
// would be 200 ms away.
//
// So a waiter asks for the position (ping), unless an earlier question is not
// answered yet: a server that is busy answers late, and no sooner for being asked
// again. Where the position stays behind, the log is flushed up to it (nudge): one
// nudge serves all that wait.
//
// Nothing is written to the log where nobody waits for what is not flushed.
type barrier struct {
	stream  *stream
	waiting func() int // how many wait: their patience is theirs
	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger
	target  atomic.Uint64
	asked   atomic.Bool // a ping is out
	wake    chan struct{}

	// Of run:
	nudge  *pgx.Conn // with synchronous_commit = local; nil after a nudge that failed
	retry  time.Time // not to connect again before
	helped time.Time // when a nudge last found something to flush
}

func newBarrier(s *stream, waiting func() int, connect func(context.Context) (*pgx.Conn, error), log *slog.Logger) *barrier {
	return &barrier{stream: s, waiting: waiting, connect: connect, log: log, wake: make(chan struct{}, 1)}
}

const (
	// nudgeAfter is how long a target may lie ahead before the log is flushed up to
	// it. Synchronous commits flush by themselves before that.
	nudgeAfter = time.Millisecond
	// nudgeSoon takes its place for asyncFor after a nudge that was needed: somebody
	// commits asynchronously, and will again.
	nudgeSoon  = 0
	asyncFor   = time.Second
	nudgeLimit = 5 * time.Second // of one nudge
	// Pings after the first are for a server that never gets to the end of its log.
	pingMin = 500 * time.Microsecond
	pingMax = 5 * time.Millisecond
)

// pingUnsure is how long a ping may be without an answer before it is sent again.
var pingUnsure = time.Second

// want is the store's hook: somebody waits for target.
func (b *barrier) want(target uint64) {
	for old := b.target.Load(); target > old; old = b.target.Load() {
		if b.target.CompareAndSwap(old, target) {
			break
		}
	}
	// From here rather than from run's goroutine: that would cost two switches. An
	// error comes up there, too.
	if b.asked.CompareAndSwap(false, true) {
		b.stream.ping()
	}
	signal(b.wake)
}

// run serves targets, and pings now and then so that a dead connection is noticed.
func (b *barrier) run(ctx context.Context) error {
	defer b.hangUp()
	b.dialOrWarn(ctx)
	idle := time.NewTicker(streamTimeout / 10)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			if err := b.stream.ping(); err != nil {
				return err
			}
		case <-b.stream.answered:
			b.asked.Store(false)
		case <-b.wake:
			if err := b.reach(ctx); err != nil {
				return err
			}
		}
	}
}

// reach sees to it that the target is passed, as long as anybody waits.
func (b *barrier) reach(ctx context.Context) error {
	start, nudged := time.Now(), uint64(0)
	pinged, pause := start, pingMin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		target, now := b.target.Load(), time.Now()
		if b.stream.seen.Load() >= target || b.waiting() == 0 {
			return nil
		}
		patience := nudgeAfter
		if start.Sub(b.helped) < asyncFor {
			patience = nudgeSoon
		}
		if nudged < target && now.Sub(start) >= patience {
			nudged = target
			if err := b.flush(ctx, target); err != nil {
				return err
			}
			continue
		}
		next := pinged.Add(pause)
		if b.asked.Load() {
			next = pinged.Add(pingUnsure)
		}
		if now.After(next) {
			b.asked.Store(true)
			if err := b.stream.ping(); err != nil {
				return err
			}
			pinged, pause = now, min(2*pause, pingMax)
			continue
		}
		if nudged < target {
			if at := start.Add(patience); at.Before(next) {
				next = at
			}
		}
		timer.Reset(next.Sub(now))
		select {
		case <-b.stream.answered:
			b.asked.Store(false)
		case <-b.wake: // a higher target, perhaps
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flush makes the server flush its log up to target. Up to version 16 that takes the
// commit of a transaction that wrote a logical message, and with it a transaction
// id. It is left out where the log is flushed already and the stream merely busy.
//
// A nudge that fails costs a query its speed, no more: it is tried again.
func (b *barrier) flush(ctx context.Context, target uint64) error {
	if b.nudge == nil && time.Now().After(b.retry) {
		b.dialOrWarn(ctx)
	}
	if b.nudge == nil {
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, nudgeLimit)
	defer cancel()
	tag, err := b.nudge.Exec(limited, nudgeName, fmt.Sprintf("%X/%X", target>>32, uint32(target)))
	if err != nil {
		b.failed(ctx, err)
	} else if tag.RowsAffected() > 0 {
		b.helped = time.Now()
	}
	return ctx.Err()
}

const nudgeName = "nudge" // of the prepared statement

func (b *barrier) dialOrWarn(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, nudgeLimit)
	defer cancel()
	if err := b.dial(limited); err != nil {
		b.failed(ctx, err)
	}
}

func (b *barrier) failed(ctx context.Context, err error) {
	b.hangUp()
	if ctx.Err() == nil {
		b.retry = time.Now().Add(time.Second)
		b.log.Warn("the server's log cannot be flushed; queries that need it are forwarded", "error", err)
	}
}

func (b *barrier) dial(ctx context.Context) (err error) {
	if b.nudge, err = b.connect(ctx); err != nil {
		return err
	}
	var version int // of 15.18, 18beta1, 19devel
	fmt.Sscanf(b.nudge.PgConn().ParameterStatus("server_version"), "%d", &version)
	message := "pg_catalog.pg_logical_emit_message(true, 'pgaccel', '')"
	if version >= 17 {
		message = "pg_catalog.pg_logical_emit_message(false, 'pgaccel', '', true)"
	}
	_, err = b.nudge.Prepare(ctx, nudgeName, "SELECT "+message+" WHERE pg_catalog.pg_current_wal_flush_lsn() < $1::text::pg_lsn")
	return err
}

func (b *barrier) hangUp() {
	if b.nudge == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	b.nudge.Close(ctx)
	b.nudge = nil
}
