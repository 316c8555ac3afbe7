package replica

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// barrier brings the stream's position to where queries wait for it. Left alone,
// the server tells its position only with data, and sends only what is flushed:
// an asynchronous commit, visible already, would be 200 ms away.
type barrier struct {
	stream *stream
	nudge  *pgx.Conn // with synchronous_commit = local
	target atomic.Uint64
	wake   chan struct{}
	helped time.Time // when a nudge last found something to flush
}

const (
	// nudgeAfter is how long a target may lie ahead before the log is flushed up to
	// it. Synchronous commits flush by themselves before that.
	nudgeAfter = time.Millisecond
	// nudgeSoon takes its place for asyncFor after a nudge that was needed: somebody
	// commits asynchronously, and will again.
	nudgeSoon    = 200 * time.Microsecond
	asyncFor     = time.Second
	barrierGiven = 5 * time.Second // by then nobody waits for the target any more
	pingMin      = 50 * time.Microsecond
	pingMax      = 2 * time.Millisecond
)

// want is the store's hook: somebody waits for target.
func (b *barrier) want(target uint64) {
	for old := b.target.Load(); target > old; old = b.target.Load() {
		if b.target.CompareAndSwap(old, target) {
			break
		}
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run serves targets, and pings now and then so that a dead connection is noticed.
func (b *barrier) run(ctx context.Context) error {
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
		case <-b.wake:
			if err := b.reach(ctx); err != nil {
				return err
			}
		}
	}
}

// reach pings, one ping at a time, until the target is passed.
func (b *barrier) reach(ctx context.Context) error {
	start, nudged := time.Now(), uint64(0)
	patience := nudgeAfter
	if start.Sub(b.helped) < asyncFor {
		patience = nudgeSoon
	}
	for pause := pingMin; ; pause = min(2*pause, pingMax) {
		target := b.target.Load()
		if b.stream.seen.Load() >= target || time.Since(start) > barrierGiven {
			return nil
		}
		select { // an answer to an earlier ping says nothing about now
		case <-b.stream.answered:
		default:
		}
		if err := b.stream.ping(); err != nil {
			return err
		}
		t := time.NewTimer(10 * time.Millisecond) // a busy server answers late
		select {
		case <-b.stream.answered:
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.Stop()
		if b.stream.seen.Load() >= target {
			continue
		}
		if nudged < target && time.Since(start) >= patience {
			nudged = target
			if err := b.flush(ctx, target); err != nil {
				return err
			}
			pause = pingMin
			continue
		}
		if left := patience - time.Since(start); nudged < target && left > 0 {
			pause = min(pause, left)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// flush makes the server flush its log up to target: the commit of a transaction
// that wrote a logical message does. It burns a transaction id, and is left out
// where the log is flushed already and the stream merely busy.
func (b *barrier) flush(ctx context.Context, target uint64) error {
	tag, err := b.nudge.Exec(ctx, "SELECT pg_catalog.pg_logical_emit_message(true, 'pgaccel', '') WHERE pg_catalog.pg_current_wal_flush_lsn() < $1::text::pg_lsn",
		fmt.Sprintf("%X/%X", target>>32, uint32(target)))
	if err == nil && tag.RowsAffected() > 0 {
		b.helped = time.Now()
	}
	return err
}
