package replica

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// lookout is the session of Look.
type lookout struct {
	free     chan struct{} // holds a token while somebody uses what follows
	epoch    *epoch        // whose server conn is on
	conn     *pgx.Conn     // nil where there is none
	prepared string        // the SQL of conn's statement lookName
	retry    time.Time     // not to connect again before
	closed   bool
}

const (
	lookName  = "pgaccel_look"
	lookLimit = 2 * time.Second // then whoever asks does without
)

// Look runs one SELECT on a session of our own and returns its rows, all in text
// form, nil for null: what the stream's server says now, outside of any client's transaction.
// The session is made when it is first needed; one statement is prepared at a time.
func (r *Replicator) Look(ctx context.Context, sql string, params []string) ([][]*string, error) {
	l := &r.lookout
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	select {
	case l.free <- struct{}{}:
		defer func() { <-l.free }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if err := l.prepare(ctx, e, sql); err != nil {
		return nil, err
	}
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	res := l.conn.PgConn().ExecPrepared(ctx, lookName, values, nil, nil).Read()
	if res.Err != nil {
		l.hangUp()
		return nil, res.Err
	}
	rows := make([][]*string, len(res.Rows))
	for i, row := range res.Rows {
		rows[i] = make([]*string, len(row))
		for j, v := range row {
			if v != nil {
				s := string(v)
				rows[i][j] = &s
			}
		}
	}
	return rows, nil
}

// prepare makes the session, where there is none, and the statement.
func (l *lookout) prepare(ctx context.Context, e *epoch, sql string) error {
	switch {
	case l.closed:
		return errors.New("closed")
	case e == nil:
		return errors.New("the replication stream is not connected")
	case e != l.epoch:
		l.hangUp()
		l.epoch = e
	}
	if l.conn == nil {
		if time.Now().Before(l.retry) {
			return errors.New("no session to look at the catalog with")
		}
		// Not ctx: a client that gives up must not cost the others the session.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
		defer cancel()
		conn, err := e.connect(limited)
		if err != nil {
			l.retry = time.Now().Add(time.Second)
			return err
		}
		l.conn, l.prepared = conn, ""
	}
	if l.prepared == sql {
		return nil
	}
	if _, err := l.conn.PgConn().Exec(ctx, "DEALLOCATE ALL").ReadAll(); err != nil {
		l.hangUp()
		return err
	}
	if _, err := l.conn.PgConn().Prepare(ctx, lookName, sql, nil); err != nil {
		l.hangUp()
		return err
	}
	l.prepared = sql
	return nil
}

func (l *lookout) hangUp() {
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		l.conn.Close(ctx)
		l.conn = nil
	}
}

// close ends the session for good.
func (l *lookout) close() {
	l.free <- struct{}{}
	l.closed = true
	l.hangUp()
	<-l.free
}
