package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// sessionsMax bounds the logins, each of which holds one of the server's connections; one more ends the one that has
	// been idle for longest.
	sessionsMax = 16
	// sessionIdle is how long one lasts that nothing asks by; sessionLife how long one lasts at most.
	sessionIdle = 30 * time.Minute
	sessionLife = 10 * time.Hour
)

// session is a login: a connection through pgaccel as the role.
type session struct {
	user, database string
	began          time.Time
	used           time.Time // guarded by sessions.mu
	turn           chan struct{}
	conn           *pgconn.PgConn // who has the turn may use it
	said           []*pgconn.Notice
}

// sessions are the logins, by the SHA-256 of their cookie: the time of a lookup tells nothing of a cookie.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*session
}

func newSessions() *sessions { return &sessions{all: map[[sha256.Size]byte]*session{}} }

// add remembers a login and returns its cookie.
func (s *sessions) add(one *session) string {
	token := rand.Text()
	now := time.Now()
	one.began, one.used = now, now
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.all) >= sessionsMax {
		var oldest [sha256.Size]byte
		for k, v := range s.all {
			if o := s.all[oldest]; o == nil || v.used.Before(o.used) {
				oldest = k
			}
		}
		go s.all[oldest].close()
		delete(s.all, oldest)
	}
	s.all[sha256.Sum256([]byte(token))] = one
	return token
}

// get returns the login of a cookie, nil where there is none any longer.
func (s *sessions) get(token string) *session {
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, now := s.all[key], time.Now()
	if one == nil {
		return nil
	}
	if one.over(now) {
		delete(s.all, key)
		go one.close()
		return nil
	}
	one.used = now
	return one
}

// over reports whether it has ended: by time, or because its connection has.
func (s *session) over(now time.Time) bool { return s.expired(now) || s.conn.IsClosed() }

func (s *session) expired(now time.Time) bool {
	return now.Sub(s.used) > sessionIdle || now.Sub(s.began) > sessionLife
}

func (s *sessions) remove(token string) {
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	one := s.all[key]
	delete(s.all, key)
	s.mu.Unlock()
	if one != nil {
		one.close()
	}
}

// expire closes the connections of those that are over.
func (s *sessions) expire(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			for key, one := range s.all {
				if one.over(now) {
					delete(s.all, key)
					go one.close()
				}
			}
			s.mu.Unlock()
		}
	}
}

func (s *sessions) closeAll() {
	s.mu.Lock()
	all := s.all
	s.all = map[[sha256.Size]byte]*session{}
	s.mu.Unlock()
	for _, one := range all {
		one.close()
	}
}

// close ends the connection, at once where something runs on it.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.acquire(ctx) == nil {
		s.conn.Close(ctx)
		s.release()
		return
	}
	s.conn.Conn().Close()
}

// acquire waits until nothing else is asked on the connection.
func (s *session) acquire(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) release() { <-s.turn }

// cookieName has the port in it: cookies are the host's, and there may be several pgaccels.
func (c *Console) cookieName() string {
	if a, ok := c.cfg.HTTP.(*net.TCPAddr); ok {
		return "pgaccel_console_" + strconv.Itoa(a.Port)
	}
	return "pgaccel_console"
}

// session returns who asks, nil for nobody.
func (c *Console) session(r *http.Request) *session {
	cookie, err := r.Cookie(c.cookieName())
	if err != nil {
		return nil
	}
	return c.sessions.get(cookie.Value)
}

func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	cookie := &http.Cookie{Name: c.cookieName(), Value: value, Path: Path, HttpOnly: true, Secure: overTLS(r), SameSite: http.SameSiteStrictMode, MaxAge: int(age.Seconds())}
	if age == 0 {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

var errBusy = errors.New("another statement of this login is still running")
