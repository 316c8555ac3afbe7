package referee

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// kind is the family of a type.
type kind vector.Kind

const (
	boolean     = kind(vector.Bool)
	int2        = kind(vector.Int2)
	int4        = kind(vector.Int4)
	int8        = kind(vector.Int8)
	numeric     = kind(vector.Numeric)
	date        = kind(vector.Date)
	timeOfDay   = kind(vector.Time)
	timestamp   = kind(vector.Timestamp)
	timestamptz = kind(vector.TimestampTZ)
	interval    = kind(vector.Interval)
	float4      = kind(vector.Float4)
	float8      = kind(vector.Float8)
	jsonb       = kind(vector.JSONB)
	money       = kind(vector.Money)
	json        = kind(vector.JSON)
	enum        = kind(vector.Enum) // the one type of world.read
	text        = kind(vector.Text)
	varchar     = kind(vector.Varchar)
	char        = kind(vector.BPChar)
)

// others are the kinds of which the generator knows only what package sqltype has.
var others = func() (list []kind) {
	own := []kind{boolean, int2, int4, int8, numeric, date, timeOfDay, timestamp, timestamptz, float4, float8, text, varchar, char}
	for _, k := range append(vector.Kinds(), vector.Enum) {
		if !slices.Contains(own, kind(k)) {
			list = append(list, kind(k))
		}
	}
	return list
}()

func (k kind) isOther() bool { return slices.Contains(others, k) }
func (k kind) sql() string {
	if k == enum {
		return enumName
	}
	return vector.Kind(k).String()
}

// enumName is the enum type's, whose labels are the samples of package sqltype.
const enumName = "public.shade"

func (k kind) entry() *sqltype.Type { return sqltype.Of(vector.Kind(k)) }
func (k kind) oid() uint32          { return k.entry().OID } // 0 of enum

// ordered are those of others that have an order.
var ordered = slices.DeleteFunc(slices.Clone(others), kind.isDocument)

func (k kind) isDocument() bool { return vector.Kind(k).IsDocument() }

// anyKind picks a kind that columns may have, anyValue one of expressions. Both have an order: what is made
// of others is forwarded too often.
func anyKind(r *rand.Rand) kind { return orderedOf(r, append(vector.Kinds(), vector.Enum)) }

func anyValue(r *rand.Rand) kind { return orderedOf(r, append(vector.Kinds(), vector.Enum)) }

func orderedOf(r *rand.Rand, list []vector.Kind) kind {
	for {
		if k := kind(list[r.IntN(len(list))]); !k.isDocument() {
			return k
		}
	}
}

func (k kind) isInt() bool    { return k == int2 || k == int4 || k == int8 }
func (k kind) isExact() bool  { return k.isInt() || k == numeric }
func (k kind) isFloat() bool  { return k == float4 || k == float8 }
func (k kind) isNumber() bool { return k.isExact() || k.isFloat() }
func (k kind) isText() bool   { return k == text || k == varchar || k == char }
func (k kind) isMoment() bool { return k == date || k == timestamp || k == timestamptz }

// typ is a type. A numeric has prec digits, scale of them behind the point; scale is
// varying where each value has its own. n is the length of char and varchar, 0 for
// none. coll is the collation of a column as COLLATE writes it, "" for the default.
type typ struct {
	kind        kind
	prec, scale int
	n           int
	coll        string
	name        string // of an opaque type
	whole       bool   // of times and timestamps: whole seconds
}

const varying = -1

// widePrec and wideScale are the declared digits of numeric columns that 64 bits do not hold; those of
// no declared digits have a prec of 0. Both are of varying scale.
const widePrec, wideScale = 30, 6

// sql is the type as a column definition writes it.
func (t typ) sql() string {
	s := t.kind.sql()
	switch {
	case t.kind == numeric && t.prec == widePrec && t.scale == varying:
		s += fmt.Sprintf("(%d,%d)", widePrec, wideScale)
	case t.kind == numeric && t.prec > 0:
		s += fmt.Sprintf("(%d,%d)", t.prec, t.scale)
	case (t.kind == varchar || t.kind == char) && t.n > 0:
		s += fmt.Sprintf("(%d)", t.n)
	case t.whole:
		s += "(0)"
	}
	if t.coll != "" {
		s += " COLLATE " + t.coll
	}
	return s
}

// limits are the least and the greatest value of an integer kind.
func (k kind) limits() (lo, hi float64) {
	switch k {
	case int2:
		return math.MinInt16, math.MaxInt16
	case int4:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

var words = []string{"", "", " ", "a", "A", "b", "B", "Z", "z", "_", "10", "9", "-a", "a ", " a", "ab", "aB", "abc", "é", "e\u0301", "É", "ß", "ss", "ö", "oz",
	"日本", "日本語", "😀", "😀a", "it's", `back\slash`, "%", "_%", "a_b", "a%b", "MFGR#12", "MFGR#121", "UNITED KI1", "new\nline", "tab\t", "NULL", "null", "\"q\"", "$1",
	"Straße", "STRASSE", "ΑΣ", "σ", "ǅ", "ﬁ", "São Paulo", "ƀ", "İ", "ı", "I", "i", "co-op", "coop", "CO-OP", "resume", "résumé", "\u00a0", "a\u200b", strings.Repeat("long ", 40), strings.Repeat("é", 70)}

var tameWords = []string{"RAIL", "SHIP", "AIR", "MAIL", "TRUCK", "ASIA", "EUROPE", "AFRICA", "alpha", "beta", "gamma", "delta", "Alpha", "BETA", "x1", "x2", "x10"}

var edgeMoments = []string{"2024-03-10 06:59:59.999999", "2024-03-10 07:00:00", "2024-03-10 07:30:00", "2024-11-03 05:30:00", "2024-11-03 06:30:00", "2024-02-29 23:59:59.999999",
	"2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2023-03-26 01:00:00", "2023-10-29 00:59:59.5", "1900-03-01 00:00:00", "2016-12-31 23:59:59",
	"2026-12-31 12:34:56.7", "2027-01-01 00:00:00.000001", "2020-12-28 08:00:00"}

var wildMoments = []string{"infinity", "-infinity", "0001-01-01 00:00:00", "0044-03-15 12:00:00 BC", "4713-01-02 00:00:00 BC", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "294275-12-31 00:00:00"}

// pool makes up to n distinct values of a type in text form. The wild have the edges
// of the type among them, the tame are values that arithmetic does not overflow with.
func pool(r *rand.Rand, t typ, n int, wild bool) []string {
	var out []string
	seen := map[string]bool{}
	add := func(s string) {
		if !seen[s] && len(out) < n {
			seen[s] = true
			out = append(out, s)
		}
	}
	if wild {
		for _, i := range r.Perm(len(edges(t))) {
			if r.IntN(3) > 0 {
				add(edges(t)[i])
			}
		}
	}
	tame := tameValue(r, t)
	if n > fewTexts && (t.kind == text || t.kind == varchar && (t.n == 0 || t.n > 100)) {
		tame = func() string { return manyText(r, n) }
	}
	for tries := 0; len(out) < n && tries < 3*n+10; tries++ {
		add(tame())
	}
	return out
}

const (
	// fewTexts are so many that words alone make them.
	fewTexts = 60
	// packedTexts are so many that a dictionary packs them.
	packedTexts = 600
)

// manyText makes a text that is one of about n: an address, or words, of which a dictionary has enough that it packs them, encoded.
func manyText(r *rand.Rand, n int) string {
	word := func() string { return tameWords[r.IntN(len(tameWords))] }
	i := r.IntN(n)
	switch r.IntN(4) {
	case 0:
		return fmt.Sprint(word(), " ", word(), " ", word(), " ", i)
	case 1:
		return fmt.Sprint(pick(r, "http://", "https://www."), strings.ToLower(word()), ".example/", word(), "/", i)
	case 2:
		return fmt.Sprint(strings.Repeat(word()+"é", i%9), " deposits ", i)
	}
	return fmt.Sprint("carefully final ", word(), " deposits ", i)
}

// edges are the values of a type that go wrong most easily.
func edges(t typ) []string {
	if t.kind.isOther() {
		return t.kind.entry().Samples
	}
	switch t.kind {
	case boolean:
		return []string{"t", "f"}
	case int2:
		return []string{"-32768", "32767", "0", "-1", "1"}
	case int4:
		return []string{"-2147483648", "2147483647", "0", "-1", "1", "65536", "32768"}
	case int8:
		return []string{"-9223372036854775808", "9223372036854775807", "0", "-1", "1", "4294967296", "9007199254740993", "2147483648"}
	case numeric:
		if t.scale == varying {
			list := []string{"0", "0.000000", "0.000001", "-1", "999999999999999999999999.999999", "-999999999999999999999999.999999", "9223372036854775808", "10000.0001"}
			if t.prec == 0 {
				list = append(list, "1.0", "1.00", "1e-20", "99999999999999999999999999999999999999", "1e60", "NaN", "Infinity", "-Infinity", "0.12345678901234567890123456789")
			}
			return list
		}
		nines := strings.Repeat("9", t.prec)
		top := nines
		if t.scale > 0 {
			top = nines[t.scale:] + "." + nines[:t.scale]
			if t.prec == t.scale {
				top = "0." + nines
			}
		}
		step := "1"
		if t.scale > 0 {
			step = "0." + strings.Repeat("0", t.scale-1) + "1"
		}
		return []string{top, "-" + top, "0", step, "-" + step}
	case date:
		return []string{"infinity", "-infinity", "0001-01-01", "0044-03-15 BC", "4713-01-01 BC", "9999-12-31", "10000-01-01", "5874897-12-31", "2024-02-29", "2000-01-01", "1999-12-31"}
	case timeOfDay:
		return []string{"00:00:00", "24:00:00", "23:59:59.999999", "12:00:00.000001", "00:00:00.5"}
	case timestamp, timestamptz:
		return withZone(t.kind, append(slices.Clone(wildMoments), edgeMoments...))
	case float4:
		return []string{"NaN", "Infinity", "-Infinity", "-0", "0", "3.4028235e+38", "-3.4028235e+38", "1e-45", "0.1", "16777216", "1e+06", "123456.79"}
	case float8:
		return []string{"NaN", "Infinity", "-Infinity", "-0", "0", "1.7976931348623157e+308", "5e-324", "0.1", "9007199254740993", "1e+16", "1e+15", "123456789012345.6", "0.0001", "1e-05", "0.30000000000000004"}
	case char:
		return clip(words, t.n, true)
	}
	return clip(words, t.n, false)
}

// withZone gives moments the zone that timestamptz needs to mean the same everywhere.
func withZone(k kind, list []string) []string {
	if k != timestamptz {
		return list
	}
	out := make([]string, len(list))
	for i, s := range list {
		switch {
		case strings.HasSuffix(s, "infinity"):
		case strings.HasSuffix(s, " BC"):
			s = strings.TrimSuffix(s, " BC") + "+00 BC"
		default:
			s += "+00"
		}
		out[i] = s
	}
	return out
}

func clip(list []string, n int, trim bool) []string {
	if n == 0 {
		return list
	}
	var out []string
	for _, s := range list {
		if c := []rune(s); len(c) > n {
			s = string(c[:n])
		}
		if trim {
			s = strings.TrimRight(s, " ")
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// tameValue returns a generator of harmless values, within a range chosen once.
func tameValue(r *rand.Rand, t typ) func() string {
	if t.kind.isOther() {
		return func() string { return pick(r, t.kind.entry().Samples...) }
	}
	span := []int64{3, 12, 100, 1000, 30000}[r.IntN(5)]
	from := int64(0)
	if r.IntN(3) == 0 {
		from = -span / 2
	}
	day := time.Date(1990+r.IntN(35), time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	step := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 977 * time.Hour}[r.IntN(5)]
	micros := r.IntN(3) == 0
	switch t.kind {
	case boolean:
		return func() string { return []string{"t", "f"}[r.IntN(2)] }
	case int2, int4, int8:
		if t.kind == int8 && r.IntN(4) == 0 {
			span *= 1000003
		}
		return func() string { return strconv.FormatInt(from+r.Int64N(span), 10) }
	case numeric:
		if t.scale == varying {
			scale, most := func() int { return wideScale }, 4*span*1e6
			if t.prec == 0 {
				one := r.IntN(4)
				scale, most = func() int { return one }, 100*span
				if r.IntN(3) == 0 {
					scale = func() int { return r.IntN(4) }
				}
			}
			return func() string { return unscaled(min(from, 0)+r.Int64N(most), scale()) }
		}
		limit := int64(math.Pow10(min(t.prec, 17)))
		span = min(span*int64(math.Pow10(min(t.scale, 8))), limit)
		if t.scale > 8 {
			span = limit
		}
		if from < 0 {
			from = -span / 2
		}
		return func() string { return unscaled(from+r.Int64N(span), t.scale) }
	case date:
		if step < 24*time.Hour {
			step = 24 * time.Hour
		}
		return func() string { return day.Add(time.Duration(r.IntN(400)) * step).Format(time.DateOnly) }
	case timeOfDay:
		return func() string {
			s := fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60))
			if micros {
				s += fmt.Sprintf(".%d", 1+r.IntN(9))
			}
			return s
		}
	case timestamp, timestamptz:
		edge := r.IntN(2) == 0
		return func() string {
			s := day.Add(time.Duration(r.IntN(2000)) * step).Format(time.DateTime)
			if micros {
				s += "." + strings.TrimRight(fmt.Sprintf("%06d", 1+r.IntN(999999)), "0")
			}
			if edge && r.IntN(3) == 0 {
				s = edgeMoments[r.IntN(len(edgeMoments))]
			}
			return withZone(t.kind, []string{s})[0]
		}
	case float4, float8:
		whole := r.IntN(3) == 0
		return func() string {
			if whole {
				return strconv.FormatInt(from+r.Int64N(span), 10)
			}
			digits := 4
			if t.kind == float8 {
				digits = []int{2, 6, 17}[r.IntN(3)]
			}
			return strconv.FormatFloat(float64(from)+r.Float64()*float64(span), 'g', digits, 64)
		}
	}
	list := tameWords
	if r.IntN(2) == 0 {
		list = words
	}
	list = clip(list, t.n, t.kind == char)
	prefix := ""
	if t.n == 0 && r.IntN(3) == 0 {
		prefix = "Customer#"
	}
	return func() string {
		if prefix != "" {
			return prefix + strconv.FormatInt(r.Int64N(span), 10)
		}
		return list[r.IntN(len(list))]
	}
}

// unscaled writes n * 10^-scale.
func unscaled(n int64, scale int) string {
	s := strconv.FormatInt(n, 10)
	if scale == 0 {
		return s
	}
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	if len(s) <= scale {
		s = strings.Repeat("0", scale-len(s)+1) + s
	}
	return sign + s[:len(s)-scale] + "." + s[len(s)-scale:]
}

// keyValue returns the i-th value of a unique column.
func keyValue(t typ, i int) string {
	switch t.kind {
	case int2, int4, int8:
		return strconv.Itoa(i)
	case numeric:
		if t.scale == varying {
			return strconv.Itoa(i) + []string{"", ".0", ".50"}[i%3]
		}
		return unscaled(int64(i), t.scale)
	case date:
		return time.Date(1992, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	case timestamp, timestamptz:
		return withZone(t.kind, []string{time.Date(1992, 1, 1, i, i%60, 0, 0, time.UTC).Format(time.DateTime)})[0]
	case timeOfDay:
		return fmt.Sprintf("%02d:%02d:%02d", i/3600%24, i/60%60, i%60)
	case float4, float8:
		return strconv.Itoa(i)
	}
	if i < len(tameWords) {
		return clip(tameWords[i:i+1], t.n, t.kind == char)[0]
	}
	return "k" + strconv.Itoa(i)
}

// quote writes s as a string constant, standard_conforming_strings on.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// bounds returns the least and greatest of a column's values as numbers.
func bounds(values []string) (lo, hi float64) {
	for i, s := range values {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) {
			return math.Inf(-1), math.Inf(1)
		}
		if i == 0 {
			lo, hi = f, f
		}
		lo, hi = min(lo, f), max(hi, f)
	}
	return lo, hi
}
