package plan

import (
	"time"

	"pgaccel/vector"
)

// Series yields, for each row of its input, the values of generate_series: From, and what is greater
// by a step, or less, up to To. Nothing where one of them is null.
type Series struct {
	Number         int // Output.Of of the value, and of its number from 1 on
	Input          Rel
	From, To, Step Expr     // of type T; Step is nil where T is a timestamp's
	By             Interval // the step of timestamps
	T              vector.Type
}

// maxSeries is the most values of a Series.
const maxSeries = 1 << 20

// Inputs implements Rel.
func (s *Series) Inputs() []Rel { return []Rel{s.Input} }

// Args are the expressions that it is computed of.
func (s *Series) Args() []Expr {
	if s.Step == nil {
		return []Expr{s.From, s.To}
	}
	return []Expr{s.From, s.To, s.Step}
}

// Types are those of what it yields.
func (s *Series) Types() []vector.Type { return []vector.Type{s.T, vector.TypeOf(vector.Int8)} }

// Values returns the values. ok is false where the server reports an error or may do so, and where
// there are more than maxSeries.
func (s *Series) Values(from, to, step int64) (values []int64, ok bool) {
	if s.Step == nil {
		step = s.By.Sign()
	}
	if step == 0 {
		return nil, false
	}
	for at := from; at <= to == (step > 0) || at == to; {
		if len(values) == maxSeries {
			return nil, false
		}
		values = append(values, at)
		if s.Step == nil {
			if at, ok = s.By.AddTo(at, true); !ok {
				return nil, false
			}
			continue
		}
		next := at + step
		if next > at != (step > 0) { // there are no more
			break
		}
		at = next
	}
	return values, true
}

// Interval is a constant of type interval. There are no such columns or expressions: it is what is
// added to a constant date or timestamp, as in date '1998-12-01' - interval '90' day.
type Interval struct{ Months, Days, Micros int64 }

const microsPerDay = 86400e6

// Sign is that of an interval compared with none, by interval_cmp: a month has 30 days.
func (v Interval) Sign() int64 {
	days := v.Months*30 + v.Days + v.Micros/microsPerDay
	if days == 0 {
		days = v.Micros % microsPerDay
	}
	return max(min(days, 1), -1)
}

// AddTo adds an interval to a timestamp: first the months, cut to the last day of the month, then the
// days, then the time. ok is false beyond the years 1 to 9999.
func (v Interval) AddTo(micros int64, within bool) (sum int64, ok bool) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	first := (time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - epoch.Unix()) * 1e6
	end := (time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - epoch.Unix()) * 1e6
	if !within || micros < first || micros >= end {
		return 0, false
	}
	day := micros / microsPerDay
	rest := micros - day*microsPerDay
	if rest < 0 {
		day, rest = day-1, rest+microsPerDay
	}
	d := epoch.AddDate(0, 0, int(day))
	if v.Months != 0 {
		month := int64(d.Year())*12 + int64(d.Month()) - 1 + v.Months
		year := month / 12
		if year < 1 || year > 9999 {
			return 0, false
		}
		last := time.Date(int(year), time.Month(month%12)+2, 0, 0, 0, 0, 0, time.UTC).Day()
		d = time.Date(int(year), time.Month(month%12)+1, min(d.Day(), last), 0, 0, 0, 0, time.UTC)
	}
	d = d.AddDate(0, 0, int(v.Days))
	sum = (d.Unix()-epoch.Unix())*1e6 + rest + v.Micros
	return sum, sum >= first && sum < end
}
