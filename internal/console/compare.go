package console

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

const (
	// compareTimeout bounds both answers of one statement together, so that they come before the HTTP server's WriteTimeout.
	compareTimeout = 45 * time.Second
	// shownRows and shownBytes bound what is sent of an answer; all of it is compared.
	shownRows  = 200
	shownBytes = 1 << 20
	// onceFrom is the time of an answer, in milliseconds, from which on it is not asked for twice.
	onceFrom = 2000
)

// answer is one side's.
type answer struct {
	Route   string      `json:"route"` // accelerated, partial or forwarded
	MS      float64     `json:"ms"`    // until the last row was read
	Rows    int64       `json:"rows"`
	Columns []string    `json:"columns"`
	Shown   [][]*string `json:"shown"` // the first rows

	ordered   [sha256.Size]byte // of all rows
	unordered uint64            // a sum over rows
}

// comparison is both.
type comparison struct {
	PgAccel  *answer  `json:"pgaccel"`
	Postgres *answer  `json:"postgres"`
	Equal    string   `json:"equal"` // yes, order (the same rows in another order) or no
	Notes    []string `json:"notes"` // why pgaccel did not answer all of it
}

var errNoRows = errors.New("only a statement that returns rows can be compared")

// compare has one statement answered by both sides: with pgaccel.mode = off by PostgreSQL, then by pgaccel as it answers any
// client, in one transaction, which is READ ONLY and of one snapshot, and is rolled back. pgaccel.queries shows the last
// execution's route, which so is not "mode off".
func (c *Console) compare(w http.ResponseWriter, r *http.Request) {
	ctx, one, release := c.acquire(w, r, compareTimeout)
	if one == nil {
		return
	}
	defer release()
	var asked struct{ SQL string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		fail(w, http.StatusBadRequest, "A statement is wanted.")
		return
	}
	both, err := one.compare(ctx, asked.SQL)
	switch {
	case errors.Is(err, errNoRows):
		fail(w, http.StatusUnprocessableEntity, err.Error())
	case err != nil && ctx.Err() != nil && !one.conn.IsClosed():
		fail(w, http.StatusUnprocessableEntity, "The statement took too long, and was cancelled.")
	case err != nil:
		c.failed(w, one, err)
	default:
		reply(w, both)
	}
}

func (s *session) compare(ctx context.Context, sql string) (*comparison, error) {
	before, err := s.routes(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL pgaccel.mode = 'off'"); err != nil {
		return nil, err
	}
	defer s.rollback()
	both := &comparison{Notes: []string{}}
	if both.Postgres, err = s.twice(ctx, sql); err != nil {
		return nil, err
	}
	if err := s.run(ctx, "SET LOCAL pgaccel.mode TO DEFAULT"); err != nil {
		return nil, err
	}
	if both.PgAccel, err = s.twice(ctx, sql); err != nil {
		return nil, err
	}
	after, err := s.routes(ctx)
	if err != nil {
		return nil, err
	}
	both.PgAccel.Route = "forwarded"
	for _, route := range []string{"accelerated", "partial"} {
		if after[route] != before[route] {
			both.PgAccel.Route = route
		}
	}
	if both.PgAccel.Route != "accelerated" {
		both.Notes = s.why(ctx, sql)
	}
	both.Postgres.Route = "forwarded"
	switch a, b := both.PgAccel, both.Postgres; {
	case a.ordered == b.ordered:
		both.Equal = "yes"
	case a.unordered == b.unordered && a.Rows == b.Rows:
		both.Equal = "order"
	default:
		both.Equal = "no"
	}
	return both, nil
}

// run runs a statement of the console's own.
func (s *session) run(ctx context.Context, sql string) error {
	_, err := s.conn.Exec(ctx, sql).ReadAll()
	return err
}

// rollback ends the transaction, also behind a context that has ended.
func (s *session) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.run(ctx, "ROLLBACK") != nil {
		s.conn.Close(ctx)
	}
}

// routes returns how many statements of the session each route has had.
func (s *session) routes(ctx context.Context) (map[string]string, error) {
	r := s.conn.ExecParams(ctx, "SELECT accelerated, partial FROM pgaccel.sessions WHERE pid = pg_catalog.pg_backend_pid()", nil, nil, nil, nil).Read()
	if r.Err != nil {
		return nil, r.Err
	}
	if len(r.Rows) != 1 {
		return map[string]string{}, nil // a session that is only relayed
	}
	return map[string]string{"accelerated": string(r.Rows[0][0]), "partial": string(r.Rows[0][1])}, nil
}

// twice has a statement answered, and a quick one once more: what is done but once, as reading a table from disk or planning, is
// no part of the time.
func (s *session) twice(ctx context.Context, sql string) (*answer, error) {
	first, err := s.ask(ctx, sql)
	if err != nil || first.MS > onceFrom {
		return first, err
	}
	again, err := s.ask(ctx, sql)
	if err != nil || first.MS < again.MS {
		return first, err
	}
	return again, nil
}

// ask has a statement answered. It is one by the protocol, so that none can end the transaction and begin another.
func (s *session) ask(ctx context.Context, sql string) (*answer, error) {
	described, err := s.conn.Prepare(ctx, "", sql, nil)
	if err != nil {
		return nil, err
	}
	if len(described.Fields) == 0 {
		return nil, errNoRows
	}
	a := &answer{Columns: []string{}, Shown: [][]*string{}}
	for _, f := range described.Fields {
		a.Columns = append(a.Columns, f.Name)
	}
	all, size := sha256.New(), 0
	began := time.Now()
	result := s.conn.ExecPrepared(ctx, "", nil, nil, nil)
	for result.NextRow() {
		row, n := hashed(result.Values())
		all.Write(row[:])
		a.unordered += binary.LittleEndian.Uint64(row[:])
		a.Rows++
		if size += n; len(a.Shown) < shownRows && size <= shownBytes {
			a.Shown = append(a.Shown, texts(result.Values()))
		}
	}
	if _, err := result.Close(); err != nil {
		return nil, err
	}
	a.MS = float64(time.Since(began).Microseconds()) / 1000
	all.Sum(a.ordered[:0])
	return a, nil
}

// hashed returns the checksum of a row, and its size.
func hashed(values [][]byte) (sum [sha256.Size]byte, size int) {
	h := sha256.New()
	for _, v := range values {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(v))<<1)
		if v == nil {
			length[0] = 1
		}
		h.Write(length[:])
		h.Write(v)
		size += len(v)
	}
	h.Sum(sum[:0])
	return sum, size
}

func texts(values [][]byte) []*string {
	row := make([]*string, len(values))
	for i, v := range values {
		if v != nil {
			text := string(v)
			row[i] = &text
		}
	}
	return row
}

// why asks what stands against a statement: EXPLAIN says so in a notice.
func (s *session) why(ctx context.Context, sql string) []string {
	if err := s.run(ctx, "SAVEPOINT why"); err != nil {
		return nil
	}
	s.said = nil
	notes := []string{}
	s.conn.ExecParams(ctx, "EXPLAIN "+sql, nil, nil, nil, nil).Read() // fails for what is no SELECT: there is no more to say
	for _, n := range s.said {
		if n.Severity == "INFO" {
			for _, text := range []string{n.Message, n.Detail, n.Hint} {
				if text != "" {
					notes = append(notes, text)
				}
			}
		}
	}
	s.run(ctx, "ROLLBACK TO why")
	return notes
}
