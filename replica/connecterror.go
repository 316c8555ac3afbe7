package replica

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// connectError says why no connection could be made, each attempt once. pgconn's text
// has a line for each of a host's ways, with TLS and without, also where both failed
// alike, and its addresses three times.
type connectError struct {
	err      error // pgconn's
	user     string
	database string
	attempts []string
	// noPassword: the server wants one. pgconn sends an empty one then, which the server calls wrong.
	noPassword bool
}

func (e *connectError) Error() string {
	text := fmt.Sprintf("cannot connect to the server as user %q to database %q: %s", e.user, e.database, strings.Join(e.attempts, "; "))
	if e.noPassword {
		text += ": no password is given, by --upstream-password-file, PGPASSFILE, ~/.pgpass or a service"
	}
	return text
}

func (e *connectError) Unwrap() error { return e.err }

// explained is what a connect to the server has returned, as text for people.
func explained(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return err
	}
	e := &connectError{err: err, user: failed.Config.User, database: failed.Config.Database}
	var refusals []string // of TLS
	for _, a := range attempts(failed.Unwrap()) {
		where, why := cause(a)
		text := where + why
		switch {
		case strings.HasSuffix(why, "server refused TLS connection"):
			refusals = append(refusals, text)
		case !slices.Contains(e.attempts, text):
			e.attempts = append(e.attempts, text)
		}
	}
	// Who refuses TLS is asked without where that is allowed; then the refusal is not
	// why it failed.
	if len(e.attempts) == 0 {
		e.attempts = slices.Compact(refusals)
	}
	var pg *pgconn.PgError
	e.noPassword = failed.Config.Password == "" && errors.As(err, &pg) && pg.Code == "28P01" // invalid_password
	return e
}

// attempts are the errors that pgconn has joined.
func attempts(err error) []error {
	type joined interface{ Unwrap() []error }
	all, ok := err.(joined)
	if !ok { // as "hostname resolving error: " and then the list
		all, ok = errors.Unwrap(err).(joined)
	}
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range all.Unwrap() {
		list = append(list, attempts(e)...)
	}
	return list
}

// cause splits the error of an attempt into the address, with a colon, and what was
// wrong. An attempt that found no address has none.
func cause(err error) (where, why string) {
	inner := errors.Unwrap(err)
	if inner == nil {
		return "", err.Error()
	}
	// "127.0.0.1:5432 (localhost): dial error: ..."
	where, ok := strings.CutSuffix(err.Error(), inner.Error())
	if address, host, both := strings.Cut(where, " ("); ok && both {
		if host = strings.TrimSuffix(host, "): "); strings.Contains(address, host) {
			where = address + ": "
		}
	} else {
		return "", err.Error()
	}
	var dial *net.OpError
	if !errors.As(inner, &dial) || dial.Op != "dial" {
		return where, inner.Error()
	}
	var system *os.SyscallError
	if errors.As(dial.Err, &system) {
		return where, system.Err.Error()
	}
	return where, dial.Err.Error()
}
