package sqlfn

import (
	"math"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// zoneNames are those of zoneConstant, and some with other offsets: of odd minutes, that leave a day out, or
// whose clocks change at midnight.
var zoneNames = append([]string{"Pacific/Apia", "America/St_Johns", "Africa/Casablanca", "America/Sao_Paulo", "Asia/Kathmandu", "Antarctica/Troll", "Pacific/Kwajalein"}, zoneConstant.Constants[3:]...)

// zoneServer asks a session about its time zone.
type zoneServer struct {
	t    *testing.T
	conn *pgx.Conn
}

func (s zoneServer) ask(sql string, times []int64) ([]int64, error) {
	rows, err := s.conn.Query(s.t.Context(), sql, times)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func (s zoneServer) Offsets(utc []int64) ([]int64, error) {
	return s.ask("SELECT date_part('timezone', to_timestamp(e + 946684800))::int8 FROM unnest($1::int8[]) WITH ORDINALITY AS u(e, n) ORDER BY n", utc)
}

func (s zoneServer) UTC(local []int64) ([]int64, error) {
	return s.ask("SELECT extract(epoch FROM (timestamp '2000-01-01' + e * interval '1 second')::timestamptz)::int8 - 946684800 FROM unnest($1::int8[]) WITH ORDINALITY AS u(e, n) ORDER BY n", local)
}

// zonesOf returns the rules of zoneNames.
func zonesOf(t *testing.T, conn *pgx.Conn) map[string]*sqltype.Zone {
	t.Helper()
	zones := map[string]*sqltype.Zone{}
	for _, name := range zoneNames {
		setZone(t, conn, name)
		z, err := sqltype.AskZone(zoneServer{t, conn})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		zones[name] = z
	}
	setZone(t, conn, "UTC")
	return zones
}

func setZone(t *testing.T, conn *pgx.Conn, name string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), "SET timezone = '"+name+"'"); err != nil {
		t.Fatal(err)
	}
}

// zoneSamples are moments around changes of clocks, of these zones, in UTC.
var zoneSamples = []string{"2024-03-31 00:59:59.999999", "2024-03-31 01:00:00", "2024-10-27 00:30:00", "2024-10-27 01:00:00", "2024-10-27 01:30:00", "2024-10-27 02:30:00",
	"2024-03-10 06:59:59", "2024-03-10 07:00:00", "2024-11-03 05:30:00", "2024-11-03 06:30:00", "2024-04-06 15:15:00", "2024-10-05 15:45:00", "2011-12-30 09:59:59", "2011-12-30 10:00:00",
	"2018-11-04 03:00:00", "2018-02-18 01:30:00", "1969-09-30 12:00:00", "1993-08-21 11:59:59", "1993-08-21 12:00:00", "1880-01-01 00:00:00", "2087-05-11 02:00:00", "2088-01-01 00:00:00", "2128-12-31 23:59:59.999999",
	"2129-01-01 00:00:00", "2300-07-01 12:00:00", "9999-12-31 23:59:59", "2024-01-31 23:30:00", "2024-02-29 04:30:00"}

// TestZonesAgainstPostgres compares the functions that depend on TimeZone, and casts, in sessions of several zones.
func TestZonesAgainstPostgres(t *testing.T) {
	conn := connect(t)
	run := `CREATE FUNCTION run(text) RETURNS text LANGUAGE plpgsql AS
		$$ DECLARE r text; BEGIN EXECUTE $1 INTO r; RETURN coalesce('=' || r, 'null'); EXCEPTION WHEN others THEN RETURN 'error ' || sqlerrm; END $$`
	if _, err := conn.Exec(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	zones := zonesOf(t, conn)
	for name, z := range zones {
		setZone(t, conn, name)
		s := inZone{conn: conn, zone: z}
		for i := range all {
			f := all[i]
			if f.Zone == NoZone {
				continue
			}
			if f.Zone == NamedZone {
				continue
			}
			f.Samples = append([][]string(nil), f.Samples...)
			for i, p := range f.Args {
				if p.Kind == vector.TimestampTZ {
					f.Samples[i] = append(append([]string(nil), f.Samples[i]...), zoneSamples...)
				}
			}
			s.compare(t, &f, "")
		}
		for _, cast := range []*Function{LocalTime(z), LocalDate(z), MomentOf(z)} {
			cast.Samples = [][]string{append(append([]string(nil), timestampSamples...), zoneSamples...)}
			s.compare(t, cast, "")
		}
		text := LocalText(z, vector.Text)
		for _, sample := range append(append([]string(nil), timestampSamples...), zoneSamples...) {
			v := parse(t, vector.TimestampTZ, "'"+sample+"'")
			got, err := text.Apply([]vector.Value{v})
			var want string
			if qerr := conn.QueryRow(t.Context(), "SELECT ("+inUTC(vector.TimestampTZ, "'"+sample+"'")+"::timestamptz)::text").Scan(&want); qerr != nil || err != nil || got.Str != want {
				t.Errorf("%s in %s is %s, the server says %s (%v, %v)", sample, name, got.Str, want, err, qerr)
			}
		}
	}
}

// TestZoneKernels compares the kernels of functions in time zones with Eval.
func TestZoneKernels(t *testing.T) {
	conn := connect(t)
	kernels := 0
	for name, z := range zonesOf(t, conn) {
		for i := range all {
			f := &all[i]
			if f.Zone == NoZone || f.Kernel == nil && f.Zone != NamedZone {
				continue
			}
			in := f.In(z)
			for varying, p := range in.Args {
				if p.Constants != nil || in.Kernel == nil {
					continue
				}
				lists := make([][]string, len(f.Args))
				for i := range f.Args {
					lists[i] = []string{"NULL"}
					if i == varying {
						continue
					}
					lists[i] = nil
					for _, c := range f.Args[i].Constants {
						lists[i] = append(lists[i], "'"+c+"'")
					}
				}
				in.Samples = append([][]string(nil), f.Samples...)
				in.Samples[varying] = append(append([]string(nil), f.Samples[varying]...), zoneSamples...)
				combine(lists, func(choice []string) {
					args := make([]vector.Value, len(choice))
					site := Call{Args: make([]Arg, len(choice))}
					for i, c := range choice {
						site.Args[i].Type = vector.TypeOf(in.Args[i].Kind)
						if i != varying {
							args[i] = parse(t, in.Args[i].Kind, c)
							site.Args[i].Const = &args[i]
						}
					}
					site.T = in.ResultType(site)
					if k := in.Kernel(site, varying); k != nil {
						kernels++
						testKernel(t, in, k, site, args, varying)
						testBounds(t, name, in, k, site, varying)
					}
				})
			}
		}
		for _, cast := range []*Function{LocalTime(z), LocalDate(z), MomentOf(z)} {
			cast.Samples = [][]string{append(append([]string(nil), timestampSamples...), zoneSamples...)}
			site := Call{Args: []Arg{{Type: vector.TypeOf(cast.Args[0].Kind)}}, T: vector.TypeOf(cast.Result)}
			k := cast.Kernel(site, 0)
			testKernel(t, cast, k, site, make([]vector.Value, 1), 0)
			testBounds(t, name, cast, k, site, 0)
			if _, err := k.F(math.MaxInt64); cast.Result == vector.Date && err == nil {
				t.Errorf("%s of infinity has a result", cast.Name)
			}
		}
	}
	if kernels < 100 {
		t.Errorf("%d kernels", kernels)
	}
}

// testBounds: what a kernel says of the results of arguments between two is so for the samples, and that it fails for none.
func testBounds(t *testing.T, zone string, f *Function, k *Kernel, site Call, varying int) {
	t.Helper()
	var words []int64
	for _, s := range f.Samples[varying] {
		if w, _ := parse(t, f.Args[varying].Kind, "'"+s+"'").Word(site.Args[varying].Type); w >= k.First && w <= k.Last {
			words = append(words, w)
		}
	}
	all := append([]int64{math.MinInt64, math.MaxInt64}, words...) // infinity is among the arguments
	for _, lo := range all {
		for _, hi := range all {
			if lo > hi {
				continue
			}
			least, greatest, err := k.Bounds(lo, hi)
			for _, v := range words {
				got, failed := k.F(v)
				if lo > v || v > hi || err != nil {
					continue
				}
				if failed != nil && !k.Fails && lo >= k.First && hi <= k.Last {
					t.Fatalf("%s in %s of %d: %v within %d to %d", f.Name, zone, v, failed, lo, hi)
				}
				if failed == nil && (got < least || got > greatest) {
					t.Fatalf("%s in %s of %d: %d is not within %d to %d, the bounds of %d to %d", f.Name, zone, v, got, least, greatest, lo, hi)
				}
			}
		}
	}
}
