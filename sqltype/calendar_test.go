package sqltype

import (
	"testing"
	"time"
)

// TestCalendar walks over every day of twelve centuries around year 0, and over days
// to both ends of Postgres' dates.
func TestCalendar(t *testing.T) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	check := func(day int64) {
		want := epoch.AddDate(0, 0, int(day))
		y, m, d := Civil(day)
		if y != int64(want.Year()) || m != int(want.Month()) || d != want.Day() {
			t.Fatalf("day %d is %d-%d-%d, want %s", day, y, m, d, want)
		}
		if back := DayOf(y, m, d); back != day {
			t.Fatalf("%d-%d-%d is day %d, want %d", y, m, d, back, day)
		}
	}
	for day := int64(-950_000); day < -500_000; day++ {
		check(day)
	}
	for day := int64(-2451545); day < 2145031948; day += 99_991 {
		check(day)
	}
	check(2145031948)
	if DayOf(2023, 13, 1) != DayOf(2024, 1, 1) {
		t.Error("month 13 is not the next January")
	}
}
