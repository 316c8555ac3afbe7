package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// relations are those of the schema pgaccel that pages show.
var relations = map[string]string{
	"tables":   "SELECT coalesce(json_agg(r), '[]') FROM pgaccel.tables r",
	"columns":  "SELECT coalesce(json_agg(r), '[]') FROM pgaccel.columns r",
	"devices":  "SELECT coalesce(json_agg(r), '[]') FROM pgaccel.devices r",
	"status":   "SELECT coalesce(json_agg(r), '[]') FROM pgaccel.status r",
	"sessions": "SELECT coalesce(json_agg(r), '[]') FROM pgaccel.sessions r",
	"queries":  "SELECT coalesce(json_agg(r), '[]') FROM pgaccel.queries r",
}

// undefinedTable is what the server says where no engine takes the schema pgaccel for its own.
const undefinedTable = "42P01"

// rowsTimeout bounds what a page waits for.
const rowsTimeout = 15 * time.Second

// rows sends a relation of the schema pgaccel as the role that has logged in sees it, in JSON.
func (c *Console) rows(w http.ResponseWriter, r *http.Request) {
	sql, ok := relations[r.PathValue("name")]
	if !ok {
		fail(w, http.StatusNotFound, "There is no such relation.")
		return
	}
	ctx, one, release := c.acquire(w, r, rowsTimeout)
	if one == nil {
		return
	}
	defer release()
	result := one.conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if err := result.Err; err != nil {
		if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.Code == undefinedTable {
			fail(w, http.StatusUnprocessableEntity, "Nothing is accelerated: pgaccel was started without --accelerate.")
			return
		}
		c.failed(w, one, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(result.Rows[0][0])
}

// acquire takes the session of a request for as long as the statement may take; nil where that cannot be, which the
// client has been told. The caller releases it.
func (c *Console) acquire(w http.ResponseWriter, r *http.Request, timeout time.Duration) (ctx context.Context, one *session, release func()) {
	if one = c.session(r); one == nil {
		fail(w, http.StatusUnauthorized, "Log in first.")
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	if one.acquire(ctx) != nil {
		cancel()
		fail(w, http.StatusServiceUnavailable, errBusy.Error())
		return nil, nil, nil
	}
	return ctx, one, func() { one.release(); cancel() }
}

// failed says why a statement of a login failed.
func (c *Console) failed(w http.ResponseWriter, one *session, err error) {
	said, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case one.conn.IsClosed():
		fail(w, http.StatusUnauthorized, "The connection to PostgreSQL has ended. Log in again.")
	case ok:
		fail(w, http.StatusUnprocessableEntity, said.Message)
	default:
		c.cfg.Log.Debug("console: statement", "error", err)
		fail(w, http.StatusServiceUnavailable, "PostgreSQL did not answer.")
	}
}
