package pushdown

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqltype"
)

// serverCallsText has the functions and operators that are left to the server, by the types of their
// arguments, and the types of their results. TestServerCalls makes it of a server's catalog. A line is
//
//	name(type,type) type
//
//go:embed servercalls.txt
var serverCallsText string

var serverCalls, serverOverloads = parseServerCalls(serverCallsText)

func parseServerCalls(text string) (results map[string]string, overloads map[string][][]string) {
	results, overloads = map[string]string{}, map[string][][]string{}
	for line := range strings.Lines(text) {
		call, result, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		results[call] = result
		name, args, _ := strings.Cut(strings.TrimSuffix(call, ")"), "(")
		var types []string
		if args != "" {
			types = strings.Split(args, ",")
		}
		overloads[name] = append(overloads[name], types)
	}
	return results, overloads
}

// serverFunctions are those that may be left to the server. None reads tables, writes, waits or
// gives another result in the same transaction and with the same settings: statement_timestamp()
// does, and is not among them.
var serverFunctions = []string{"now", "transaction_timestamp", "date_trunc", "date_part", "extract", "timezone", "make_date", "make_time",
	"make_timestamp", "make_timestamptz", "make_interval", "age", "to_char", "to_date", "to_timestamp", "to_number", "date_bin", "justify_days", "justify_hours",
	"justify_interval", "isfinite", "current_setting", "version", "abs", "sign", "round", "trunc", "floor", "ceil", "ceiling", "mod", "power",
	"sqrt", "lower", "upper", "left", "right", "substr", "length", "replace", "lpad", "rpad", "btrim", "ltrim", "rtrim", "split_part"}

// serverTypes are the types of what is left to the server, and of its parts.
var serverTypes = map[string]bool{"bool": true, "int2": true, "int4": true, "int8": true, "numeric": true, "float4": true, "float8": true,
	"text": true, "date": true, "time": true, "timestamp": true, "timestamptz": true, "interval": true}

// implicitName is implicit, by name; interval is no kind.
func implicitName(from, to string) bool {
	return from == to || from == "time" && to == "interval" || from != "interval" && to != "interval" && implicit(typeNames[from], typeNames[to])
}

// resolveServer returns the type of the result of a call, as func_select_candidate in parse_func.c
// chooses among the overloads; ok is false where it is not certain. A literal without a type is text
// where one of them takes that.
func resolveServer(name string, args []serverExpr) (result string, ok bool) {
	var candidates [][]string
	for _, c := range serverOverloads[name] {
		fits := len(c) == len(args)
		for i := 0; fits && i < len(c); i++ {
			fits = args[i].kind == "unknown" && c[i] == "text" || args[i].kind != "unknown" && implicitName(args[i].kind, c[i])
		}
		if fits {
			candidates = append(candidates, c)
		}
	}
	// Those that match most arguments exactly, and then those that take most as they are or in
	// the preferred type of their category.
	for _, prefer := range []bool{false, true} {
		best := 0
		scores := make([]int, len(candidates))
		for k, c := range candidates {
			for i := range c {
				if c[i] == args[i].kind || prefer && (c[i] == "interval" || c[i] != "interval" && preferred(typeNames[c[i]])) {
					scores[k]++
				}
			}
			best = max(best, scores[k])
		}
		var left [][]string
		for k, c := range candidates {
			if scores[k] == best {
				left = append(left, c)
			}
		}
		candidates = left
	}
	if len(candidates) != 1 {
		return "", false
	}
	result, ok = serverCalls[name+"("+strings.Join(candidates[0], ",")+")"]
	return result, ok
}

var (
	timeLiteral     = regexp.MustCompile(`^\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?$`)
	negativeOnce    = regexp.MustCompile(`^\s*-\s*\d+(\.\d+)?\s*[a-zA-Z]*\s*$`)
	settingsMatters = []string{"date", "time", "timestamp", "timestamptz", "interval"}
)

// checkLiteral refuses a literal of a type that the settings decide on: DateStyle, TimeZone,
// IntervalStyle; or the moment at which it is read.
func checkLiteral(s, kind string) {
	if !slices.Contains(settingsMatters, kind) {
		return
	}
	s = strings.Trim(s, sqltype.Space)
	ok := false
	switch kind {
	case "time":
		ok = timeLiteral.MatchString(s)
	case "interval":
		ok = !strings.Contains(s, "-") || negativeOnce.MatchString(s)
	default:
		var m sqltype.Moment
		m, ok = sqltype.ParseMoment(s)
		ok = ok && (m.Zoned || kind != "timestamptz")
	}
	if !ok {
		fail(plan.ReasonType, "a constant of type "+kind+" in this form")
	}
}
