package sqltype

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/vector"
)

// intervalTexts are forms of intervals; those of unreadIntervals are the server's to read.
var (
	intervalTexts = []string{"24:00:00", "1 day 02:00", "1 day -02:00:00.5", "100:00", "@ 1 year 2 mons -3 days 4 hours 5 mins 6.789 secs ago", "@ 0", "@ 1 min", "@ 1 hour 0.000001 secs", "P1Y2M3DT4H5M6S", "P-1Y-2M3DT-4H-5M-6.5S", "P1W", "PT0S", "PT0.5S", "P1M", "1-2", "-1-2", "+1-2 -3 +4:05:06",
		"1 2:03:04", "1-2 3 4:05:06", "-1-2 +3 -4:05:06", "1 mon", "30 days", "1.5 seconds", "-0.25 secs", "1 hour 0.5 s", "1 y 2 months 3 d", "3 h 4 m", "2 WEEKS ago", "1 DAY ago", "+1 day", "1 year 1 mon 1 day 01:01:01.5", "-1 days", "-1 day +02:00", "2 hrs 5 msecs 3 usecs", "0 years", "5 yrs", "P1Y", "PT4H5.25S"}
	unreadIntervals = []string{"", "@", "ago", "-1 day 02:00", "-1 2:03:04", "-1-2 3 4:05:06", "P", "PT", "P1", "P1YT", "P1D1Y", "@ P1D", " P1D", "P1D ", "1\u00a0day", "1\u2003day", "P1D ago", "1 day ago 2 hours", "1-12", "1 day 1 day", "1 week 1 week", "1 ys", "12", "12:30.5", "1.5 hours", "1 sec 1.5 secs", "1 hour 01:00", "3 fortnights", "1 day ago ago", "1:2:3 1 day"}
)

// TestParseIntervalAgainstPostgres compares what is read, under each IntervalStyle, and what the server writes under it.
func TestParseIntervalAgainstPostgres(t *testing.T) {
	conn := realPostgres(t)
	for _, s := range unreadIntervals {
		if _, _, _, ok := ParseInterval(s); ok {
			t.Errorf("%q is read", s)
		}
	}
	r := rand.New(rand.NewPCG(7, 3))
	for _, style := range []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"} {
		query(t, conn, "SET IntervalStyle = "+style)
		texts := append([]string{}, intervalTexts...)
		for range 400 {
			texts = append(texts, randomInterval(r))
		}
		read := 0
		for i, s := range texts {
			months, days, micros, ok := ParseInterval(s)
			if !ok {
				if i < len(intervalTexts) {
					t.Errorf("%q is not read", s)
				}
				continue
			}
			read++
			rows := query(t, conn, "SELECT encode(interval_send('"+s+"'::interval), 'hex'), '"+s+"'::interval::text")
			raw, fits := OpaqueInterval(months, days, micros)
			if want := fmt.Sprintf("%x", raw); !fits || rows[0][0] != want {
				t.Errorf("%s: %q is %s, the server says %s", style, s, want, rows[0][0])
			}
			if m, d, u, ok := ParseInterval(rows[0][1]); ok && (m != months || d != days || u != micros) {
				t.Errorf("%s: %q is written as %q, and read as another", style, s, rows[0][1])
			}
		}
		if read < 100 {
			t.Errorf("%s: %d are read", style, read)
		}
	}
	if d, ok := ParseOpaqueInterval("1 mon"); !ok || d.Type.Kind != vector.Opaque {
		t.Error("1 mon is no interval of any fields")
	}
}

// randomInterval puts an interval together of pieces that may follow each other.
func randomInterval(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	n := func() string { return pick("", "", "-", "+") + pick("0", "1", "7", "63", "70000") }
	var words []string
	if r.IntN(6) == 0 {
		words = append(words, "@")
	}
	if r.IntN(5) == 0 {
		words = append(words, pick("1-2", "-3-4", "+0-11"))
	}
	for _, unit := range []string{"years", "mons", "weeks", "day", "hours", "min", "sec", "milliseconds", "us"} {
		if r.IntN(3) == 0 {
			v := n()
			if unit == "sec" && r.IntN(2) == 0 {
				v += pick(".5", ".000001", ".25")
			}
			words = append(words, v, unit)
		}
	}
	if r.IntN(4) == 0 {
		words = append(words, n())
	}
	if r.IntN(3) == 0 {
		words = append(words, pick("", "-", "+")+pick("1:02", "24:00:00", "100:59:59.999999", "0:00:00.5"))
	}
	if r.IntN(5) == 0 {
		words = append(words, "ago")
	}
	return strings.Join(words, " ")
}
