package engine

import (
	"fmt"
	"slices"
	"strings"

	"pgaccel/syntax"
)

// To PostgreSQL the settings of pgaccel are placeholders, which take any text under any name, and are not there before they are
// set. A statement that sets one wrongly is made to fail on the server as one that sets a setting of its own wrongly: with
// the same SQLSTATE at the same place, so that a transaction fails with it. The error is written anew on its way
// back. Only statements are looked at: what set_config, functions, roles and databases set is taken as it comes, where any other text
// counts as the default.

// setting is one of pgaccel's.
type setting struct {
	byDefault string
	values    []string          // that it may have; nil where valid decides
	valid     func(string) bool // likewise
	hint      func(string) string
}

var settings = map[string]setting{
	"mode":          {byDefault: "auto", values: []string{"auto", "off", "force"}},
	"device":        {byDefault: "auto", values: []string{"auto", "cpu", "cuda", "emu"}},
	"index":         {byDefault: "auto", values: []string{"auto", "off", "force"}},
	"float_sum":     {byDefault: "exact", values: []string{"exact", "forward"}},
	"ties":          {byDefault: "any", values: []string{"any", "forward"}},
	"reuse":         {byDefault: "on", values: []string{"on", "off"}},
	"max_staleness": {byDefault: "0", valid: func(v string) bool { _, ok := parseStaleness(v); return ok }, hint: unitsHint},
}

// unitsHint is what PostgreSQL adds to a number with a unit that it does not know.
func unitsHint(value string) string {
	v := strings.TrimLeft(strings.TrimSpace(value), "+-")
	if v == "" || v[0] < '0' || v[0] > '9' {
		return ""
	}
	return `Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".`
}

// takes reports whether the setting may have a value. The empty one stands for the default.
func (s setting) takes(value string) bool {
	if value == "" {
		return true
	}
	if s.values != nil {
		return slices.Contains(s.values, strings.ToLower(value))
	}
	return s.valid(value)
}

// SettingError is what PostgreSQL says of a setting of its own that is set wrongly.
type SettingError struct {
	Code, Message, Detail, Hint string
}

// Settings returns the text to be run in place of one whose statements set settings of pgaccel's wrongly, or that shows one;
// "" where it is to be run as it is. shows says that the first column of its one row is what SHOW would show.
func Settings(sql string) (text string, shows bool) {
	if !isASCII(sql) {
		return "", false // which the server may read otherwise
	}
	list := syntax.ParsePart(sql).Settings()
	for i := len(list) - 1; i >= 0; i-- {
		s := list[i]
		name := strings.TrimPrefix(s.Name, syntax.VirtualSchema+".")
		known, ok := settings[name]
		switch {
		case s.Show && ok && s.Alone:
			return fmt.Sprintf(`SELECT COALESCE(NULLIF(pg_catalog.current_setting('%s', true), ''), '%s') AS "%s"`, s.Name, known.byDefault, s.Name), true
		case s.Show, ok && (!s.Set || known.takes(s.Value)):
			continue
		}
		scope := "SET"
		if s.Local {
			scope = "SET LOCAL" // of which the server may have a warning
		}
		if text == "" {
			text = sql
		}
		marker := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(wrongBegin + name + "=" + s.Value + wrongEnd)
		text = text[:s.Start] + " " + scope + " client_min_messages = E'" + marker + "'" + text[s.End:]
	}
	return text, false
}

// The value in a message of the server's that stands for a setting set wrongly.
const (
	wrongBegin = `pgaccel setting `
	wrongEnd   = `; of pgaccel`
)

// WrongSetting returns what a message of the server's stands for, nil for itself.
func WrongSetting(message string) *SettingError {
	_, rest, ok := strings.Cut(message, wrongBegin)
	end := strings.LastIndex(rest, wrongEnd)
	if !ok || end < 0 {
		return nil
	}
	name, value, _ := strings.Cut(rest[:end], "=")
	s, known := settings[name]
	full := syntax.VirtualSchema + "." + name
	if !known {
		return &SettingError{Code: "42602", Message: fmt.Sprintf("invalid configuration parameter name %q", full), Detail: fmt.Sprintf("%q is a reserved prefix.", syntax.VirtualSchema)}
	}
	f := &SettingError{Code: "22023", Message: `invalid value for parameter "` + full + `": "` + value + `"`}
	if s.values != nil {
		f.Hint = "Available values: " + strings.Join(s.values, ", ") + "."
	} else {
		f.Hint = s.hint(value)
	}
	return f
}
