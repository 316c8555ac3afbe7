package tpcds

import (
	"fmt"
	"time"
)

// Days are counted as in d_date_sk: by Julian day number.
const (
	unixEpoch = 2440588 // 1970-01-01
	firstDate = 2415022 // 1900-01-02
	dateRows  = 73049   // until 2100-01-01

	daySeconds = 24 * 60 * 60
)

func day(year int, month time.Month, dom int) int {
	return unixEpoch + int(time.Date(year, month, dom, 0, 0, 0, 0, time.UTC).Unix()/daySeconds)
}

func dateOf(day int) time.Time { return time.Unix(int64(day-unixEpoch)*daySeconds, 0).UTC() }

func dateText(day int) string { return dateOf(day).Format(time.DateOnly) }

// today is what the flags of the current day, week, month, quarter and year refer to.
var today = day(2003, 1, 8)

// Weeks begin on Sunday; week 1 is that of the first day.
func weekOf(day int) int { return (day-firstDate+2)/7 + 1 }

func quarterOf(t time.Time) int { return (int(t.Month())-1)/3 + 1 }

func isHoliday(t time.Time) bool {
	switch t.Month() {
	case time.January:
		return t.Day() == 1
	case time.July:
		return t.Day() == 4
	case time.November:
		return t.Weekday() == time.Thursday && (t.Day()-1)/7 == 3 // the fourth one
	case time.December:
		return t.Day() == 25 || t.Day() == 31
	}
	return false
}

func (w *row) date(key int) {
	day := firstDate + key - 1
	t, now := dateOf(day), dateOf(today)
	month := func(t time.Time) int { return (t.Year()-1900)*12 + int(t.Month()) - 1 }
	quarter := func(t time.Time) int { return (t.Year()-1900)*4 + quarterOf(t) }
	w.Number(day)
	w.id("D", day)
	w.Text(dateText(day))
	w.Number(month(t))
	w.Number(weekOf(day))
	w.Number(quarter(t))
	w.Number(t.Year())
	w.Number(int(t.Weekday()))
	w.Number(int(t.Month()))
	w.Number(t.Day())
	w.Number(quarterOf(t))
	w.Number(t.Year())
	w.Number(quarter(t))
	w.Number(weekOf(day))
	w.Text(t.Weekday().String())
	w.Text(fmt.Sprintf("%dQ%d", t.Year(), quarterOf(t)))
	w.yes(isHoliday(t))
	w.yes(t.Weekday() == time.Saturday || t.Weekday() == time.Sunday)
	w.yes(isHoliday(t.AddDate(0, 0, -1)))
	first := day - t.Day() + 1
	w.Number(first)
	w.Number(first + dateOf(first).AddDate(0, 1, -1).Day() - 1)
	w.Number(day - 365)
	w.Number(day - 91)
	w.yes(day == today)
	w.yes(weekOf(day) == weekOf(today))
	w.yes(month(t) == month(now))
	w.yes(quarter(t) == quarter(now))
	w.yes(t.Year() == now.Year())
}

func (w *row) time(key int) {
	second := key - 1
	hour := second / 3600
	w.Number(second)
	w.id("T", second)
	w.Number(second)
	w.Number(hour)
	w.Number(second / 60 % 60)
	w.Number(second % 60)
	w.Text([]string{"AM", "PM"}[hour/12])
	w.Text([]string{"third", "first", "second"}[hour/8])
	w.Text([]string{"night", "morning", "afternoon", "evening"}[hour/6])
	switch {
	case hour >= 6 && hour < 9:
		w.Text("breakfast")
	case hour >= 11 && hour < 14:
		w.Text("lunch")
	case hour >= 17 && hour < 21:
		w.Text("dinner")
	default:
		w.Null()
	}
}

// Sales are of five years. Days of the three zones of comparability (January to July, August to October,
// November and December) have sales in the proportion of their weights; sales come in the order of days.
var (
	salesFirst   = day(1998, 1, 2)
	salesDays    = day(2003, 1, 2) - salesFirst
	weightedDays = func() (days []int) { // each day as often as its weight
		for d := range salesDays {
			weight := 5
			switch m := dateOf(salesFirst + d).Month(); {
			case m >= time.November:
				weight = 14
			case m >= time.August:
				weight = 8
			}
			for range weight {
				days = append(days, salesFirst+d)
			}
		}
		return days
	}()
)

// salesDay is the day of order i of n.
func salesDay(i, n int) int { return weightedDays[i*len(weightedDays)/n] }
