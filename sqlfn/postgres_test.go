package sqlfn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/pgserver"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// runAll returns what the server's function run, which the test has made, says of each statement.
func runAll(t *testing.T, conn *pgx.Conn, statements []string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT run(s) FROM unnest($1::text[]) WITH ORDINALITY u(s, n) ORDER BY n", statements)
	if err != nil {
		t.Fatal(err)
	}
	said, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// connect starts a server whose sessions are in UTC.
func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"timezone": "UTC", "extra_float_digits": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	conn, err := pgx.Connect(ctx, server.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// TestSignatures compares each entry with pg_proc.
func TestSignatures(t *testing.T) {
	conn := connect(t)
	for _, f := range All() {
		var name, kind string
		var args []uint32
		var result uint32
		var strict, volatile, set bool
		err := conn.QueryRow(context.Background(), `SELECT proname, prokind::text, proargtypes::oid[], prorettype, proisstrict, provolatile = 'v', proretset
			FROM pg_proc WHERE oid = $1`, f.OID).Scan(&name, &kind, &args, &result, &strict, &volatile, &set)
		if err != nil {
			t.Errorf("%s, %d: %v", f.Name, f.OID, err)
			continue
		}
		if f.Variadic { // "any"
			args = args[:0]
			for _, p := range f.Args {
				args = append(args, sqltype.OID(p.Kind))
			}
		}
		if name != f.Name || kind != "f" || volatile || set || strict == f.CalledOnNull || result != sqltype.OID(f.Result) || len(args) != len(f.Args) {
			t.Errorf("%s, %d is %s with %d arguments, strict %v, volatile %v, result %d in the server", f.Name, f.OID, name, len(args), strict, volatile, result)
			continue
		}
		for i, p := range f.Args {
			if want := sqltype.OID(p.Kind); p.Interval && args[i] != 1186 || !p.Interval && want != args[i] {
				t.Errorf("%s, %d: argument %d is of type %d", f.Name, f.OID, i+1, args[i])
			}
		}
	}
}

// samples are the arguments to try for a parameter, as literals; null is one.
func samples(f *Function, i int) []string {
	list := []string{""}
	if p := f.Args[i]; p.Constants != nil {
		for _, c := range p.Constants {
			for _, s := range []string{c, strings.ToUpper(c), strings.ToLower(c), mixed(c, 0), mixed(c, 1)} {
				if s = "'" + s + "'"; p.Takes(strings.Trim(s, "'")) && !slices.Contains(list, s) {
					list = append(list, s)
				}
			}
		}
		return list[1:]
	}
	for _, s := range f.Samples[i] {
		list = append(list, "'"+strings.ReplaceAll(s, "'", "''")+"'")
	}
	list[0] = "NULL"
	return list
}

// mixed returns c with every other letter a capital.
func mixed(c string, first int) string {
	b := []byte(strings.ToLower(c))
	for i := first; i < len(b); i += 2 {
		b[i] = strings.ToUpper(c[i : i+1])[0]
	}
	return string(b)
}

// combine calls f with one of each list, in every combination.
func combine(lists [][]string, f func(choice []string)) {
	choice := make([]string, len(lists))
	var next func(i int)
	next = func(i int) {
		if i == len(lists) {
			f(choice)
			return
		}
		for _, s := range lists[i] {
			choice[i] = s
			next(i + 1)
		}
	}
	next(0)
}

// inUTC returns a sample so that it is one value in every time zone.
func inUTC(k vector.Kind, sample string) string {
	s := strings.Trim(sample, "'")
	if k != vector.TimestampTZ || sample == "NULL" || strings.HasSuffix(s, "infinity") || strings.Contains(s, "+") {
		return sample
	}
	day, era, bc := strings.Cut(s, " BC")
	if bc {
		era = " BC"
	}
	return "'" + day + "+00" + era + "'"
}

func parse(t *testing.T, k vector.Kind, literal string) vector.Value {
	t.Helper()
	return parseDatum(t, k, literal).Value()
}

// parseDatum returns a numeric in a type of its scale.
func parseDatum(t *testing.T, k vector.Kind, literal string) vector.Datum {
	t.Helper()
	if literal == "NULL" {
		return vector.Null(vector.TypeOf(k))
	}
	s := literal
	if quoted, ok := strings.CutPrefix(literal, "'"); ok {
		s = strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), "''", "'")
	}
	if k == vector.TimestampTZ {
		s = strings.Trim(inUTC(k, "'"+s+"'"), "'")
	}
	d, ok := sqltype.Of(k).Parse(s)
	if !ok {
		t.Fatalf("%s is no %s here", literal, k)
	}
	return d
}

// TestAgainstPostgres calls each function with every combination of its samples, here and in
// a server: the same result or no result.
func TestAgainstPostgres(t *testing.T) {
	conn := connect(t)
	ctx := context.Background()
	if _, err := conn.Exec(ctx, `CREATE FUNCTION run(text) RETURNS text LANGUAGE plpgsql AS
		$$ DECLARE r text; BEGIN EXECUTE $1 INTO r; RETURN coalesce('=' || r, 'null'); EXCEPTION WHEN others THEN RETURN 'error ' || sqlerrm; END $$`); err != nil {
		t.Fatal(err)
	}
	functions := make([]*Function, 0, len(all))
	for i := range all {
		if functions = append(functions, &all[i]); all[i].InASCII != nil {
			functions = append(functions, all[i].InASCII)
		}
	}
	utc := inZone{conn: conn, named: zonesOf(t, conn)}
	for i, f := range functions {
		collate := ""
		if i > 0 && functions[i-1].InASCII == f {
			collate = ` COLLATE "C"`
		}
		utc.compare(t, f, collate)
	}
}

// inZone is a session in a time zone.
type inZone struct {
	conn  *pgx.Conn
	zone  *sqltype.Zone            // nil: UTC
	named map[string]*sqltype.Zone // zones that arguments name
}

// of returns the function that a call is of in the session.
func (z inZone) of(f *Function, site Call) *Function {
	switch {
	case f.Zone == SessionZone && z.zone != nil:
		return f.In(z.zone)
	case f.Zone == NamedZone:
		for name, zone := range z.named {
			if strings.EqualFold(name, f.ZoneName(site)) {
				return f.In(zone)
			}
		}
	}
	return f
}

// compare calls a function with every combination of its samples, here and in the server.
func (z inZone) compare(t *testing.T, f *Function, collate string) {
	var names []string
	lists := make([][]string, len(f.Args))
	for i, p := range f.Args {
		names = append(names, sqltype.Of(p.Kind).Name)
		if lists[i] = samples(f, i); p.Interval {
			names[i] = "interval"
		}
	}
	t.Run(f.Name+"("+strings.Join(names, ",")+")"+collate, func(t *testing.T) {
		var statements []string
		var calls [][]string
		combine(lists, func(choice []string) {
			args := make([]string, len(choice))
			for i, c := range choice {
				args[i] = inUTC(f.Args[i].Kind, c) + "::" + names[i] + collate
			}
			call := fmt.Sprintf("pg_catalog.%q(%s)", f.Name, strings.Join(args, ", "))
			if f.Result == vector.TimestampTZ {
				call = "timezone('UTC', " + call + ")"
			}
			statements = append(statements, "SELECT ("+call+")::text")
			calls = append(calls, append([]string(nil), choice...))
		})
		want := runAll(t, z.conn, statements)
		answered, declined := 0, 0
		for n, choice := range calls {
			args := make([]vector.Value, len(choice))
			site := Call{Args: make([]Arg, len(choice))}
			for i, c := range choice {
				d := parseDatum(t, f.Args[i].Kind, c)
				args[i] = d.Value()
				site.Args[i] = Arg{vector.TypeOf(f.Args[i].Kind), &args[i]}
				site.Args[i].Type.Scale = d.Type.Scale
			}
			got, err := z.of(f, site).Apply(args)
			failed := strings.HasPrefix(want[n], "error ")
			if f.Total && (failed || err != nil) {
				t.Errorf("%s: %v, of a function that never fails; the server says %s", statements[n], err, want[n])
			}
			switch {
			case failed != (err != nil) && failed:
				t.Errorf("%s is %v; the server says %s", statements[n], got, want[n])
			case failed:
			case err != nil:
				declined++
			default:
				answered++
				site.T = f.ResultType(site)
				if !equal(t, f.Result, got, want[n]) || f.Result == vector.Numeric && !got.Null && site.T.Scale >= 0 && got.Num.Scale != site.T.Scale {
					t.Errorf("%s is %v of type %v; the server says %s", statements[n], got, site.T, want[n])
				}
			}
		}
		t.Logf("%d calls, %d answered, %d left to the server", len(calls), answered, declined)
		if answered == 0 || answered <= declined && !f.Partial {
			t.Errorf("of %d calls %d are answered", len(calls), answered)
		}
	})
}

// equal reports whether v is what the server wrote.
func equal(t *testing.T, k vector.Kind, v vector.Value, text string) bool {
	switch {
	case text == "null" || v.Null:
		return text == "null" && v.Null
	case k == vector.Numeric: // of which the server has more digits than are read
		return v.Num.String() == text[1:]
	}
	return v == parse(t, k, "'"+strings.ReplaceAll(text[1:], "'", "''")+"'")
}

// TestKernels compares every kernel with Eval, and with what it says of itself.
func TestKernels(t *testing.T) {
	kernels := 0
	for i := range all {
		f := &all[i]
		if f.Kernel == nil || f.Zone == NamedZone { // TestZoneKernels has these
			continue
		}
		for varying, p := range f.Args {
			if p.Constants != nil {
				continue
			}
			lists := make([][]string, len(f.Args))
			for i := range f.Args {
				if lists[i] = samples(f, i); i == varying {
					lists[i] = []string{"NULL"}
				}
			}
			combine(lists, func(choice []string) {
				args := make([]vector.Value, len(choice))
				site := Call{Args: make([]Arg, len(choice))}
				for i, c := range choice {
					site.Args[i].Type = vector.TypeOf(f.Args[i].Kind)
					if i != varying {
						args[i] = parse(t, f.Args[i].Kind, c)
						site.Args[i].Const = &args[i]
					}
				}
				scales := []int16{0}
				if f.Args[varying].Kind == vector.Numeric {
					scales = []int16{0, 2, 6, 18}
				}
				for _, scale := range scales {
					site.Args[varying].Type.Scale = scale
					site.T = f.ResultType(site)
					if k := f.Kernel(site, varying); k != nil {
						kernels++
						t.Run(fmt.Sprint(f.Name, choice, scale), func(t *testing.T) {
							testKernel(t, f, k, site, args, varying)
							testBounds(t, "UTC", f, k, site, varying)
						})
					}
				}
			})
		}
	}
	if kernels < 50 {
		t.Errorf("%d kernels", kernels)
	}
}

func testKernel(t *testing.T, f *Function, k *Kernel, site Call, args []vector.Value, varying int) {
	p := f.Args[varying].Kind
	words := []int64{0, 1, -1, math.MinInt32, math.MaxInt32, math.MinInt64, math.MaxInt64, k.First, k.Last}
	if k.First > math.MinInt64 {
		words = append(words, k.First-1)
	}
	if k.Last < math.MaxInt64 {
		words = append(words, k.Last+1)
	}
	for _, s := range f.Samples[varying] {
		w, _ := parse(t, p, "'"+s+"'").Word(site.Args[varying].Type)
		words = append(words, w-1, w, w+1)
	}
	for _, v := range words {
		if p == vector.Time && (v < 0 || v > sqltype.MicrosPerDay) || p == vector.Date && (v < math.MinInt32 || v > math.MaxInt32) {
			continue
		}
		args[varying] = vector.WordValue(v, site.Args[varying].Type)
		got, err := k.F(v)
		want, wantErr := f.Eval(args)
		w, fits := want.Word(site.T)
		if fits = fits && wantErr == nil; fits != (err == nil) {
			t.Fatalf("of %d: %v, Eval %v, %v", v, err, want, wantErr)
		}
		if (v < k.First || v > k.Last) && err == nil {
			t.Fatalf("of %d, beyond %d to %d: %d", v, k.First, k.Last, got)
		}
		if err != nil {
			continue
		}
		if want.Null || w != got {
			t.Fatalf("of %d: %d, Eval %v", v, got, want)
		}
		if !k.Monotone && k.Range == nil && (got < k.Min || got > k.Max) {
			t.Fatalf("of %d: %d is not within %d to %d", v, got, k.Min, k.Max)
		}
		if k.Around != nil && v >= k.First && v <= k.Last {
			lo, hi := k.Around(v)
			for _, u := range []int64{lo, hi} {
				if r, err := k.F(u); lo > v || hi < v || err != nil || r != got {
					t.Fatalf("of %d: %d, and of %d, of which it is the same (%d to %d): %d, %v", v, got, u, lo, hi, r, err)
				}
			}
			if every := k.Every(v, v); every != 0 && v > k.First+every {
				if r, err := k.F(sqltype.FloorDiv(v, every) * every); err == nil && r != got {
					t.Fatalf("of %d: %d, and of the multiple of %d before it %d", v, got, every, r)
				}
			}
		}
		if k.Shift != nil && v >= sqltype.TimestampFirst && v <= sqltype.TimestampLast {
			lo, hi := k.Shift(v)
			for _, u := range []int64{max(lo, k.First, sqltype.TimestampFirst), min(hi, k.Last, sqltype.TimestampLast)} {
				if r, err := k.F(u); lo > v || hi < v || err == nil && r-u != got-v {
					t.Fatalf("of %d: %d, and of %d, which it differs from by as much (%d to %d): %d", v, got, u, lo, hi, r)
				}
			}
		}
		for _, u := range words {
			if !k.Monotone {
				break
			}
			if r, err := k.F(u); err == nil && (u < v) && r > got {
				t.Fatalf("of %d: %d, of %d: %d", v, got, u, r)
			}
		}
	}
}
