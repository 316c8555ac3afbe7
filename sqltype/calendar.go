package sqltype

// Spans of time in microseconds, the unit of times and timestamps.
const (
	MicrosPerSecond = 1_000_000
	MicrosPerDay    = 86_400 * MicrosPerSecond
)

// Civil returns the proleptic Gregorian date of a day counted from 2000-01-01; year 0
// is 1 BC. (Hinnant, chrono-compatible low-level date algorithms)
func Civil(days int64) (year int64, month, day int) {
	z := days + 730425 // from 0000-03-01
	era := FloorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp) + 3
	year = yoe + era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// DayOf is the inverse of Civil. Month 13 is the next year's January, and a day past
// the month's end one of the next month.
func DayOf(year int64, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := FloorDiv(year, 400)
	yoe := year - era*400
	doy := int64((153*(month-3)+2)/5 + day - 1)
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 730425
}

// FloorDiv returns a/b rounded down; b > 0.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
