package console

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// login begins a session by one of the server's, through pgaccel.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	var asked struct{ User, Password, Database string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.User == "" || strings.ContainsRune(asked.User+asked.Password+asked.Database, 0) {
		fail(w, http.StatusBadRequest, "A role is wanted.")
		return
	}
	from := source(r)
	if !c.logins.take(from) {
		w.Header().Set("Retry-After", fmt.Sprint(int(failureWindow.Seconds())))
		fail(w, http.StatusTooManyRequests, "Too many logins have failed from this address. Try again in a minute.")
		return
	}
	one, err := c.connect(r.Context(), asked.User, asked.Password, cmp.Or(asked.Database, c.cfg.Databases[0]), c.open(r))
	if err != nil {
		c.cfg.Log.Warn("console: a login failed", "user", asked.User, "database", asked.Database, "from", r.RemoteAddr, "error", messageOf(err))
		refused, ok := errors.AsType[*pgconn.PgError](err)
		switch {
		case ok && strings.HasPrefix(refused.Code, "28"): // invalid authorization
			fail(w, http.StatusUnauthorized, refused.Message)
		case errors.Is(err, errNoPassword):
			fail(w, http.StatusForbidden, err.Error())
		case ok:
			c.logins.giveBack(from)
			fail(w, http.StatusServiceUnavailable, refused.Message)
		default:
			c.logins.giveBack(from)
			fail(w, http.StatusServiceUnavailable, "PostgreSQL cannot be connected to through pgaccel.")
		}
		return
	}
	c.logins.giveBack(from)
	if old, err := r.Cookie(c.cookieName()); err == nil {
		c.sessions.remove(old.Value)
	}
	c.setCookie(w, r, c.sessions.add(one), sessionLife)
	c.cfg.Log.Info("console: a login", "user", asked.User, "database", one.database, "from", r.RemoteAddr)
	reply(w, map[string]string{"user": one.user})
}

// messageOf is what the server says of a login that fails, or else all there is to say.
func messageOf(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Message
	}
	return err.Error()
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	if old, err := r.Cookie(c.cookieName()); err == nil {
		c.sessions.remove(old.Value)
	}
	c.setCookie(w, r, "", 0)
	reply(w, struct{}{})
}

var errNoPassword = errors.New("pg_hba.conf lets this role in without a password, which the console takes on this machine only")

const (
	loginTimeout = 20 * time.Second
	noticesMax   = 20 // that are kept of a statement
	// messageMax bounds the bytes of a row: it is in memory as a whole.
	messageMax = 256 << 20
)

// connect opens the connection of a login; here says that who asks is on this machine. Nothing of the process's own environment counts: no PGPASSWORD, no password file.
func (c *Console) connect(ctx context.Context, user, password, database string, here bool) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	cfg, err := pgconn.ParseConfig("")
	if err != nil {
		return nil, err
	}
	clients := c.cfg.Clients()
	cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database = "127.0.0.1", 5432, user, password, database
	cfg.RuntimeParams = map[string]string{"application_name": "pgaccel console", "client_encoding": "UTF8"}
	cfg.KerberosSpn, cfg.KerberosSrvName, cfg.SSLNegotiation, cfg.SSLCertMode = "", "", "", ""
	cfg.MinProtocolVersion, cfg.MaxProtocolVersion = "3.0", "3.0"
	cfg.ValidateConnect, cfg.AfterConnect, cfg.MaxProtocolMessageBodyLen = nil, nil, messageMax
	cfg.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, clients) }
	// As sslmode=prefer: pgaccel may ask its clients for TLS, and the other end is this process. Its certificate need not be
	// the server's, to which the login would be bound.
	cfg.ChannelBinding, cfg.TLSConfig, cfg.Fallbacks = "disable", nil, nil
	_, tcp := clients.(*net.TCPAddr)
	if tcp {
		cfg.TLSConfig = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
		cfg.Fallbacks = []*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port}}
	}
	// pg_hba.conf speaks of pgaccel's address. Where that needs no password, who reaches pgaccel's own port is let in,
	// too: on this machine that are the same people, elsewhere not.
	cfg.RequireAuth = "password,md5,scram-sha-256"
	if here && tcp {
		cfg.RequireAuth = ""
	}
	one := &session{user: user, database: database, turn: make(chan struct{}, 1)}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if len(one.said) < noticesMax {
			one.said = append(one.said, n)
		}
	}
	cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 5 * time.Second}
	}
	if one.conn, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
		if cfg.RequireAuth != "" && strings.Contains(err.Error(), "require_auth") {
			err = errNoPassword
		}
		return nil, err
	}
	return one, nil
}

// dial connects to an address that something listens on.
func dial(ctx context.Context, to net.Addr) (net.Conn, error) {
	if a, ok := to.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		to = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: a.Port}
	}
	var d net.Dialer
	return d.DialContext(ctx, to.Network(), to.String())
}

const (
	// failuresMax is how many logins may fail from one address in a failureWindow.
	failuresMax   = 5
	failureWindow = time.Minute
	// sourcesMax bounds the addresses that are remembered.
	sourcesMax = 4096
)

// limiter bounds guesses of passwords. An attempt counts from its beginning, so that many at once are no way around.
type limiter struct {
	failures *expirable.LRU[string, chan struct{}]
}

func newLimiter() *limiter {
	return &limiter{expirable.NewLRU[string, chan struct{}](sourcesMax, nil, failureWindow)}
}

// take reports whether one more attempt may be made, and counts it.
func (l *limiter) take(from string) bool {
	slots, ok := l.failures.Get(from)
	if !ok {
		slots = make(chan struct{}, failuresMax)
		l.failures.Add(from, slots)
	}
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// giveBack uncounts an attempt that was no guess.
func (l *limiter) giveBack(from string) {
	if slots, ok := l.failures.Get(from); ok {
		select {
		case <-slots:
		default:
		}
	}
}

// source is the address that a request is from; of IPv6 the network, of which one machine has all addresses.
func source(r *http.Request) string {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "" // a Unix socket
	}
	ip := a.Addr().Unmap()
	if ip.Is6() {
		if p, err := ip.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
