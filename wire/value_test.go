package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

var (
	privateOnce   sync.Once
	privateServer *pgserver.Server
)

func TestMain(m *testing.M) {
	code := m.Run()
	if privateServer != nil {
		privateServer.Stop()
	}
	os.Exit(code)
}

// realPostgres connects to a private server that all tests share.
func realPostgres(t testing.TB) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	privateOnce.Do(func() {
		var err error
		if privateServer, err = pgserver.Start(ctx, pgserver.Options{}); err != nil {
			log.Fatal(err)
		}
	})
	conn, err := pgconn.Connect(ctx, privateServer.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgconn.PgConn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatal(sql, err)
	}
}

// dataRow is a DataRow message made of raw field values.
func dataRow(fields [][]byte) []byte {
	b := []byte{'D', 0, 0, 0, 0, byte(len(fields) >> 8), byte(len(fields))}
	for _, f := range fields {
		if f == nil {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	return b
}

// field is the first field of a DataRow of one column.
func field(row []byte) []byte {
	if n := int32(binary.BigEndian.Uint32(row[7:])); n < 0 {
		return nil
	}
	return row[11:]
}

// arrayParam is the binary form of a one-dimensional array whose elements are the
// encoder's binary fields.
func arrayParam(e *RowEncoder, oid uint32, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, oid)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = binary.BigEndian.AppendUint32(b, 1)
	for i := range n {
		f := field(e.Append(nil, i))
		if f == nil {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return b
}

var settings15 = TextSettings{DateStyle: "ISO, MDY", TimeZone: "UTC",
	ExtraFloatDigits: 1, ClientEncoding: "UTF8", IntervalStyle: "postgres", ByteaOutput: "hex", Monetary: "C"}

// echo sends a column to Postgres in binary form and asserts that what comes back,
// in both formats, is what the encoder writes.
func echo(t *testing.T, conn *pgconn.PgConn, c vector.Column, n int, s TextSettings) {
	t.Helper()
	oid := sqltype.OID(c.Type.Kind)
	columns, oids := []vector.Column{c}, []uint32{oid}
	bin, err := NewRowEncoder(columns, oids, []int16{FormatBinary}, s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := NewRowEncoder(columns, oids, nil, s)
	if err != nil {
		t.Fatal(err)
	}
	param := arrayParam(bin, oid, n)
	typ := c.Type.Kind.String()
	if c.Type.Kind == vector.BPChar {
		typ = "bpchar"
	}
	for _, enc := range []struct {
		e      *RowEncoder
		format int16
	}{{bin, FormatBinary}, {text, FormatText}} {
		rows := conn.ExecParams(context.Background(), "select x from unnest($1::"+typ+"[]) with ordinality u(x,i) order by i",
			[][]byte{param}, nil, []int16{1}, []int16{enc.format})
		i, bad := 0, 0
		for rows.NextRow() {
			want, got := dataRow(rows.Values()), enc.e.Append(nil, i)
			if !bytes.Equal(got, want) {
				if bad++; bad < 10 {
					t.Errorf("%s format %d %+v row %d: got %q, want %q", c.Type.Kind, enc.format, s, i, got, want)
				}
			}
			i++
		}
		if _, err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if i != n {
			t.Fatalf("%d rows, want %d", i, n)
		}
	}
}

func intColumn(k vector.Kind, values []int64) vector.Column {
	c := vector.Column{Type: vector.TypeOf(k), Ints: values}
	for i := 3; i < len(values); i += 17 {
		c.SetNull(i, len(values))
	}
	return c
}

func TestIntegersAndBools(t *testing.T) {
	conn := realPostgres(t)
	for _, c := range []struct {
		kind vector.Kind
		bits int
	}{{vector.Int2, 16}, {vector.Int4, 32}, {vector.Int8, 64}} {
		var v []int64
		for b := range c.bits {
			for d := int64(-1); d <= 1; d++ {
				v = append(v, int64(1)<<b+d, -int64(1)<<b+d)
			}
		}
		var fit []int64
		shift := 64 - c.bits
		for _, x := range v {
			fit = append(fit, x<<shift>>shift)
		}
		echo(t, conn, intColumn(c.kind, fit), len(fit), settings15)
	}
	echo(t, conn, intColumn(vector.Bool, []int64{0, 1, 1, 0, 1}), 5, settings15)
}

func TestNumerics(t *testing.T) {
	conn := realPostgres(t)
	var v []vector.Decimal
	r := rand.New(rand.NewPCG(1, 2))
	ten := big.NewInt(10)
	for digits := range 39 {
		p := new(big.Int).Exp(ten, big.NewInt(int64(digits)), nil)
		for _, b := range []*big.Int{p, new(big.Int).Sub(p, big.NewInt(1)), new(big.Int).Add(p, big.NewInt(1)),
			new(big.Int).Mod(new(big.Int).SetBytes(fmt.Appendf(nil, "%016x", r.Uint64())), p)} {
			for _, scale := range []int16{0, 1, 2, 3, 4, 5, 7, 8, 16, 38, 39, 41, 100, 999} {
				u, ok := vector.Int128FromBig(b)
				if ok {
					v = append(v, vector.Decimal{Unscaled: u, Scale: scale}, vector.Decimal{Unscaled: u.Neg(), Scale: scale})
				}
			}
		}
	}
	for _, i := range []vector.Int128{{Hi: math.MinInt64}, {Hi: math.MaxInt64, Lo: math.MaxUint64}, {Hi: 1}, {Hi: -1},
		vector.Int128Of(math.MinInt64), vector.Int128Of(math.MaxInt64), {Lo: math.MaxUint64}} {
		v = append(v, vector.Decimal{Unscaled: i}, vector.Decimal{Unscaled: i, Scale: 3})
	}
	c := vector.Column{Type: vector.NumericType(vector.VaryingScale), Decimals: v}
	echo(t, conn, c, len(v), settings15)
}

func TestFloats(t *testing.T) {
	conn := realPostgres(t)
	var v []float64
	add := func(f float64) { v = append(v, f, -f) }
	for _, f := range []float64{0, 1, math.Inf(1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 0.3, 1e15, 1e14,
		999999999999999, 1234567890123456, 9007199254740992, 9007199254740993, 9007199254740994, 123456, 1234567, 1e5, 1e6, 1e-4, 1e-5, 0.00012345, 2.2250738585072014e-308} {
		add(f)
	}
	for e := -323; e <= 308; e++ {
		f := math.Pow(10, float64(e))
		add(f)
		add(math.Nextafter(f, 0))
		add(math.Nextafter(f, math.Inf(1)))
	}
	for e := -1074; e < 1024; e++ {
		f := math.Ldexp(1, e)
		add(f)
		add(math.Nextafter(f, 0))
		add(math.Nextafter(f, math.Inf(1)))
	}
	// Decimals that lie exactly between two floats, and the floats around them.
	for q := range 24 {
		for d := 1; d < 60; d++ {
			f := float64(d) * math.Pow(10, float64(q))
			add(f)
			add(math.Nextafter(f, 0))
			add(math.Nextafter(f, math.Inf(1)))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	// Short binary fractions: two decimals may be equally near.
	for f := range 90 {
		for range 60 {
			m := float64(r.Uint64()>>(11+r.IntN(50)) | 1)
			add(math.Ldexp(m, -f))
			add(float64(float32(math.Ldexp(float64(r.Uint32()>>(8+r.IntN(20))|1), -f))))
		}
	}
	for range 20000 {
		add(math.Float64frombits(r.Uint64()))
		add(float64(r.IntN(1e6)) / 100)
		add(float64(r.Uint64() >> r.IntN(64)))
	}
	f8, f4 := make([]int64, len(v)), make([]int64, len(v))
	for i, f := range v {
		f8[i] = int64(math.Float64bits(f))
		f4[i] = sqltype.WidenFloat4(math.Float32bits(float32(f)))
	}
	for _, extra := range []int{1, 3} {
		s := settings15
		s.ExtraFloatDigits = extra
		exec(t, conn, fmt.Sprintf("set extra_float_digits = %d", extra))
		echo(t, conn, intColumn(vector.Float8, f8), len(f8), s)
		echo(t, conn, intColumn(vector.Float4, f4), len(f4), s)
	}
	// Every power of two and its neighbours in single precision, and random bits.
	f4 = f4[:0]
	for b := uint32(0); b < 0x7f800000; b += 1 << 23 {
		for d := -2; d <= 2; d++ {
			f4 = append(f4, sqltype.WidenFloat4(b+uint32(d)))
		}
	}
	for range 40000 {
		f4 = append(f4, sqltype.WidenFloat4(r.Uint32()))
	}
	for m := uint32(1 << 23); m < 1<<23+3000; m++ {
		for _, e := range []uint32{23, 24, 25, 26, 27, 28, 30, 33, 36} {
			f4 = append(f4, sqltype.WidenFloat4((127+e)<<23|m&0x7fffff))
		}
	}
	echo(t, conn, intColumn(vector.Float4, f4), len(f4), settings15)
	s := settings15
	s.ExtraFloatDigits = 0
	if _, err := NewRowEncoder([]vector.Column{intColumn(vector.Float8, f8)}, []uint32{sqltype.OIDFloat8}, nil, s); err == nil {
		t.Error("extra_float_digits 0 rounds, but was taken")
	}
}

func TestDatesAndTimes(t *testing.T) {
	conn := realPostgres(t)
	r := rand.New(rand.NewPCG(5, 6))
	days := []int64{sqltype.DateNegInfinity, sqltype.DateInfinity, -2451545, 2145031948, 0, -1, 1, 59, 60, 365, 366, -730121, -730120, -730119, -730485, -730486, -730851}
	for range 3000 {
		days = append(days, int64(r.IntN(2451545+3000000))-2451545, r.Int64N(20000)-5000, r.Int64N(2145031948))
	}
	micros := []int64{sqltype.TimestampNegInfinity, sqltype.TimestampInfinity, -211813488000000000, 9223371331199999999, 0, -1, 1, 999999, 1000000, 10, 100, 123450, -sqltype.MicrosPerDay, -sqltype.MicrosPerDay - 1}
	for range 3000 {
		d := (r.Int64N(2451545+106751991) - 2451545) * sqltype.MicrosPerDay
		micros = append(micros, d, d+r.Int64N(sqltype.MicrosPerDay), d+r.Int64N(86400)*sqltype.MicrosPerSecond, d+r.Int64N(864000000)*100, r.Int64N(1<<50))
	}
	clock := []int64{0, 1, sqltype.MicrosPerDay, sqltype.MicrosPerDay - 1, 500000}
	for range 2000 {
		clock = append(clock, r.Int64N(sqltype.MicrosPerDay), r.Int64N(86400)*sqltype.MicrosPerSecond, r.Int64N(86400000)*1000)
	}
	for _, style := range []string{"ISO", "Postgres", "SQL", "German"} {
		for _, order := range []string{"MDY", "DMY", "YMD"} {
			for _, zone := range []string{"UTC", "GMT"} {
				s := settings15
				s.DateStyle, s.TimeZone = style+", "+order, zone
				exec(t, conn, "set datestyle = '"+s.DateStyle+"'; set timezone = '"+zone+"'")
				rows, err := conn.Exec(context.Background(), "show datestyle").ReadAll()
				if err != nil || string(rows[0].Rows[0][0]) != s.DateStyle {
					t.Fatalf("DateStyle %q, %v", rows[0].Rows, err)
				}
				echo(t, conn, intColumn(vector.Date, days), len(days), s)
				echo(t, conn, intColumn(vector.Timestamp, micros), len(micros), s)
				echo(t, conn, intColumn(vector.TimestampTZ, micros), len(micros), s)
				echo(t, conn, intColumn(vector.Time, clock), len(clock), s)
			}
		}
	}
	zoned := []vector.Column{intColumn(vector.TimestampTZ, micros[:20])}
	for _, zone := range []string{"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu",
		"GMT", "Etc/GMT", "GMT0", "Etc/GMT0", "GMT+0", "Etc/GMT+0", "GMT-0", "Etc/GMT-0", "Greenwich", "Etc/Greenwich"} {
		for _, style := range []string{"ISO, MDY", "SQL, MDY"} {
			s := settings15
			s.DateStyle, s.TimeZone = style, zone
			exec(t, conn, "set datestyle = '"+style+"'; set timezone = '"+zone+"'")
			echo(t, conn, zoned[0], 20, s)
		}
	}
	for _, zone := range []string{"Europe/Berlin", "", "<+00>-00", "Etc/GMT-1", "Europe/London"} {
		s := settings15
		s.TimeZone = zone
		if _, err := NewRowEncoder(zoned, []uint32{sqltype.OIDTimestampTZ}, nil, s); err == nil {
			t.Errorf("zone %q was taken", zone)
		}
		if _, err := NewRowEncoder(zoned, []uint32{sqltype.OIDTimestampTZ}, []int16{1}, s); err != nil {
			t.Errorf("binary depends on no zone: %v", err)
		}
	}
}

// TestEveryType writes the samples of each type but text and numeric, of those held in 64 bits the ends of its range and
// values between.
func TestEveryType(t *testing.T) {
	conn := realPostgres(t)
	r := rand.New(rand.NewPCG(9, 10))
	for _, k := range vector.Kinds() {
		typ := sqltype.Of(k)
		if k.IsString() && !k.IsText() {
			c := vector.Column{Type: vector.TypeOf(k)}
			for i, s := range typ.Samples {
				d, _ := typ.Parse(s)
				c.Append(d, i)
			}
			echo(t, conn, c, len(typ.Samples), settings15)
		}
		if typ.ParseWord == nil {
			continue
		}
		var words []int64
		for _, s := range typ.Samples {
			v, ok := typ.ParseWord(s)
			if !ok {
				t.Fatal(k, s)
			}
			words = append(words, v)
		}
		if typ.Ranged() {
			words = append(words, typ.Least, typ.Greatest)
			for span := uint64(typ.Greatest - typ.Least); len(words) < 500; {
				words = append(words, typ.Least+int64(r.Uint64()>>r.IntN(64)%max(span, 1)))
			}
		}
		echo(t, conn, intColumn(k, words), len(words), settings15)
	}
}

func TestTexts(t *testing.T) {
	conn := realPostgres(t)
	v := []string{"", "a", "a  ", " a", "äöü", "日本語", strings.Repeat("x", 70000), "\x01\n\t\\'\"", "NULL", "🦆"}
	for _, k := range []vector.Kind{vector.Text, vector.Varchar, vector.BPChar} {
		c := vector.Column{Type: vector.TypeOf(k), Strs: v}
		c.SetNull(4, len(v))
		echo(t, conn, c, len(v), settings15)
	}
	c := []vector.Column{{Type: vector.TypeOf(vector.Text), Strs: []string{"a", "ä"}}}
	s := settings15
	s.ClientEncoding = "LATIN1"
	if _, err := NewRowEncoder(c, []uint32{sqltype.OIDText}, nil, s); err == nil {
		t.Error("UTF-8 was written to a LATIN1 client")
	}
	c[0].Strs = c[0].Strs[:1]
	if _, err := NewRowEncoder(c, []uint32{sqltype.OIDText}, nil, s); err != nil {
		t.Error("ASCII is the same in LATIN1:", err)
	}
}

// TestDescribedTypeDecides writes integers and floats of one width as another.
func TestDescribedTypeDecides(t *testing.T) {
	conn := realPostgres(t)
	v := []int64{0, 1, -1, 32767, -32768, 10000, 9999, 100000000}
	f := make([]int64, len(v))
	for i := range v {
		f[i] = sqltype.WidenFloat4(math.Float32bits(float32(v[i]) / 7))
	}
	columns := []vector.Column{
		{Type: vector.TypeOf(vector.Int4), Ints: v}, {Type: vector.TypeOf(vector.Int8), Ints: v},
		{Type: vector.TypeOf(vector.Int4), Ints: v}, {Type: vector.TypeOf(vector.Float4), Ints: f},
	}
	oids := []uint32{sqltype.OIDInt8, sqltype.OIDInt4, sqltype.OIDNumeric, sqltype.OIDFloat8}
	for _, format := range []int16{0, 1} {
		e, err := NewRowEncoder(columns, oids, []int16{format, format, format, format}, settings15)
		if err != nil {
			t.Fatal(err)
		}
		rows := conn.ExecParams(context.Background(), `select x::int8, x::int4, x::numeric, ((x::float4)/7::float4)::float8
			from unnest(array[0,1,-1,32767,-32768,10000,9999,100000000]) with ordinality u(x,i) order by i`, nil, nil, nil, []int16{format})
		i := 0
		for ; rows.NextRow(); i++ {
			if want, got := dataRow(rows.Values()), e.Append(nil, i); !bytes.Equal(got, want) {
				t.Errorf("format %d row %d: got %q, want %q", format, i, got, want)
			}
		}
		if _, err := rows.Close(); err != nil || i != len(v) {
			t.Fatal(i, err)
		}
	}
	wide := []vector.Column{{Type: vector.TypeOf(vector.Int8), Ints: []int64{1 << 31}}}
	if _, err := NewRowEncoder(wide, []uint32{sqltype.OIDInt4}, nil, settings15); err == nil {
		t.Error("2^31 was written as int4")
	}
	wide[0].SetNull(0, 1)
	if _, err := NewRowEncoder(wide, []uint32{sqltype.OIDInt4}, nil, settings15); err != nil {
		t.Error("a null fits every type:", err)
	}
	for _, formats := range [][]int16{{2}, {0, 0}, {-1}} {
		if _, err := NewRowEncoder(wide, []uint32{sqltype.OIDInt8}, formats, settings15); err == nil {
			t.Errorf("formats %v were taken", formats)
		}
	}
	if _, err := NewRowEncoder(wide, nil, nil, settings15); err == nil {
		t.Error("a column without description was taken")
	}
	none, err := NewRowEncoder(nil, nil, nil, settings15)
	if err != nil || !bytes.Equal(none.Append(nil, 0), []byte{'D', 0, 0, 0, 6, 0, 0}) {
		t.Error("a row without columns:", err)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	n := 64
	ints, floats, strs, decs := make([]int64, n), make([]int64, n), make([]string, n), make([]vector.Decimal, n)
	for i := range n {
		ints[i] = int64(i) * 123456789
		floats[i] = int64(math.Float64bits(float64(i) / 3))
		strs[i] = "abc"
		decs[i] = vector.Decimal{Unscaled: vector.Int128{Hi: int64(i), Lo: 12345}, Scale: 2}
	}
	columns := []vector.Column{{Type: vector.TypeOf(vector.Int8), Ints: ints}, {Type: vector.TypeOf(vector.Float8), Ints: floats},
		{Type: vector.TypeOf(vector.Text), Strs: strs}, {Type: vector.NumericType(2), Decimals: decs},
		{Type: vector.TypeOf(vector.TimestampTZ), Ints: ints}}
	oids := []uint32{20, 701, 25, 1700, 1184}
	for _, format := range []int16{0, 1} {
		e, err := NewRowEncoder(columns, oids, []int16{format}, settings15)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 0, 1<<16)
		if a := testing.AllocsPerRun(10, func() {
			b := buf
			for i := range n {
				b = e.Append(b, i)
			}
		}); a != 0 {
			t.Errorf("format %d: %v allocations in %d rows", format, a, n)
		}
	}
}
