package advise

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/replica"
	"pgaccel/sqltype"
	"pgaccel/syntax"
)

// pg_stat_statements has $1 where the text had a constant, and where it had a parameter; nobody can tell. As
// parameters they may stand where no parameter can: date $1, extract($2 FROM x). A statement is planned with
// parameters of the types that the server gives them, and with constants of these types in their places.

// forms are what a normalised text may have been.
type forms struct {
	params    string // as parameters, but for those that the grammar has constants for
	types     []uint32
	constants string // with constants
	replaced  bool   // constants is another text than the one that was asked about
	problem   string // why there are none
}

// byWord are constants that stand behind the name of their type.
var byWord = map[string]string{"date": "'2000-01-01'", "timestamp": "'2000-01-01 00:00:00'", "timestamptz": "'2000-01-01 00:00:00+00'",
	"time": "'12:00:00'", "interval": "'1 day'"}

// required are the constants that the grammar wants.
func required(_ int, before [2]string) string {
	if before[0] == "extract" && before[1] == "(" {
		return "'month'"
	}
	if before[0] == "time" && before[1] == "zone" {
		return "" // AT TIME ZONE, mostly
	}
	return byWord[before[1]]
}

// supposed are those, and others that functions take nothing else for.
func supposed(_ int, before [2]string) string {
	switch {
	case before[1] == "(" && (before[0] == "date_trunc" || before[0] == "date_part"):
		return "'month'"
	case before[1] == "limit" || before[1] == "offset" || before[1] == "first" || before[1] == "next":
		return "10"
	}
	return required(0, before)
}

// byType are constants by type.
var byType = map[uint32]string{sqltype.OIDInt2: "1", sqltype.OIDInt4: "1", sqltype.OIDInt8: "1", sqltype.OIDNumeric: "0.5", sqltype.OIDFloat4: "0.5", sqltype.OIDFloat8: "0.5",
	sqltype.OIDText: "'a'", sqltype.OIDVarchar: "'a'", sqltype.OIDBPChar: "'a'", sqltype.OIDBool: "true", sqltype.OIDDate: "'2000-01-01'", sqltype.OIDTime: "'12:00:00'",
	sqltype.OIDTimestamp: "'2000-01-01 00:00:00'", sqltype.OIDTimestampTZ: "'2000-01-01 00:00:00+00'", oidInterval: "'1 day'", oidUUID: "'00000000-0000-0000-0000-000000000000'"}

const (
	oidInterval = 1186
	oidUUID     = 2950
)

// formsOf asks the server for the types of a text's parameters. Nothing is executed.
func formsOf(ctx context.Context, s *replica.Survey, sql string) (forms, error) {
	repeated := syntax.Parse(sql).RepeatedConstants()
	f := forms{params: syntax.ReplaceParams(sql, orRepeated(repeated, required))}
	constant := syntax.ReplaceParams(sql, orRepeated(repeated, supposed))
	if !hasParams(constant) {
		f.constants, f.replaced = constant, constant != sql
		return f, nil
	}
	types, problem, err := typesOf(ctx, s, f.params)
	if err != nil {
		return f, err
	}
	f.types = types
	if problem != "" {
		// As parameters, date_trunc($1, at) is not what GROUP BY date_trunc($2, at) has.
		f.params = ""
		if types, problem, err = typesOf(ctx, s, constant); err != nil {
			return f, err
		}
	}
	if problem == "" {
		f.constants = syntax.ReplaceParams(constant, func(n int, _ [2]string) string {
			if n > len(types) || n < 1 {
				return ""
			}
			return byType[types[n-1]]
		})
	} else {
		all := syntax.ReplaceParams(constant, func(int, [2]string) string { return "1" })
		_, still, err := typesOf(ctx, s, all)
		if err != nil {
			return f, err
		}
		if still != "" {
			f.problem = problem
			return f, nil
		}
		f.constants = all
	}
	f.replaced = true
	return f, nil
}

// orRepeated takes the constants that the text itself has elsewhere.
func orRepeated(repeated map[int]string, other func(int, [2]string) string) func(int, [2]string) string {
	return func(n int, before [2]string) string {
		if text := repeated[n]; text != "" {
			return text
		}
		return other(n, before)
	}
}

// hasParams reports whether a text has parameters.
func hasParams(sql string) (has bool) {
	syntax.ReplaceParams(sql, func(int, [2]string) string {
		has = true
		return ""
	})
	return has
}

// typesOf has the server parse a text. problem is what it has against it.
func typesOf(ctx context.Context, s *replica.Survey, sql string) (types []uint32, problem string, err error) {
	d, err := s.Conn.PgConn().Prepare(ctx, "", sql, nil)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		return nil, worded(refused), nil
	case err != nil:
		return nil, "", err
	}
	return d.ParamOIDs, "", nil
}

// worded says what the server has against a text that it once took.
func worded(e *pgconn.PgError) string {
	switch {
	case e.Code == "42601": // syntax_error
		return "cut off, or a constant stood where $n cannot: " + e.Message
	case e.Code == "42803", e.Code == "42P18", e.Code == "42725", strings.HasPrefix(e.Code, "22"):
		return "which constants $n stand for decides: " + e.Message
	}
	return fmt.Sprintf("the server does not take it in a session of this role: %s", e.Message)
}
