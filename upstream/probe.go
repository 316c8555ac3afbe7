package upstream

import (
	"context"
	"fmt"
	"io"
	"time"

	"pgaccel/wire"
)

const probeTimeout = 3 * time.Second

// TakesSessions asks the server as pg_isready does, by the beginning of a session, and returns
// why it takes none.
func (c *Config) TakesSessions(ctx context.Context, user, database string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, _, err := c.Dial(ctx, Client{})
	if err != nil {
		return fmt.Errorf("the PostgreSQL server cannot be reached: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(probeTimeout))
	body := "user\x00" + user + "\x00database\x00" + database + "\x00application_name\x00pgaccel\x00\x00"
	if _, err := conn.Write(wire.AppendStartup(nil, wire.Version30, []byte(body))); err != nil {
		return fmt.Errorf("the PostgreSQL server cannot be reached: %w", err)
	}
	message := make([]byte, wire.HeaderLen, 4<<10)
	if _, err := io.ReadFull(conn, message); err != nil {
		return fmt.Errorf("the PostgreSQL server does not answer: %w", err)
	}
	typ, total, ok := wire.Header(message)
	if !ok || typ != wire.ErrorResponse || total > cap(message) {
		return nil // it asks for credentials, or for none
	}
	message = message[:total]
	if _, err := io.ReadFull(conn, message[wire.HeaderLen:]); err != nil {
		return fmt.Errorf("the PostgreSQL server does not answer: %w", err)
	}
	// What it says of a role, or of a database, is no matter of other sessions.
	switch code := string(wire.ErrorField(message[wire.HeaderLen:], 'C')); code {
	case "57P03", "57P01", "57P02", "53300":
		return fmt.Errorf("the PostgreSQL server takes no sessions: %s", wire.ErrorField(message[wire.HeaderLen:], 'M'))
	}
	return nil
}
