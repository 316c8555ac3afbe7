package sqltype

// UTCAbbreviation returns what Postgres prints for a time zone that is UTC at all times;
// ok is false for all others, which would need the server's own time zone data. The name
// is TimeZone's as the server shows it: in the zone's own spelling, however it was set
// (pg_tzset in src/timezone/pgtz.c).
func UTCAbbreviation(timeZone string) (abbreviation string, ok bool) {
	switch timeZone {
	case "UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu":
		return "UTC", true
	case "GMT", "Etc/GMT", "GMT0", "Etc/GMT0", "GMT+0", "Etc/GMT+0", "GMT-0", "Etc/GMT-0", "Greenwich", "Etc/Greenwich":
		return "GMT", true
	}
	return "", false
}
