package explain

import (
	"fmt"
	"strings"

	"pgaccel/sqltype"
)

// json writes a statement as ExplainPrintPlan does in FORMAT JSON.
func (g group) json() string {
	var b strings.Builder
	b.WriteString("[\n  ")
	g.appendJSON(&b, 1)
	b.WriteString("\n]")
	return b.String()
}

func (g group) appendJSON(b *strings.Builder, indent int) {
	b.WriteString("{")
	for i, f := range g {
		if i > 0 {
			b.WriteByte(',')
		}
		newLine(b, indent+1)
		b.WriteString(escapeJSON(f.Key) + ": ")
		switch v := f.Value.(type) {
		case string:
			b.WriteString(escapeJSON(v))
		case []string:
			all := make([]string, len(v))
			for i, s := range v {
				all[i] = escapeJSON(s)
			}
			b.WriteString("[" + strings.Join(all, ", ") + "]")
		case group:
			v.appendJSON(b, indent+1)
		case list:
			b.WriteString("[")
			for i, m := range v.groups {
				if i > 0 {
					b.WriteByte(',')
				}
				newLine(b, indent+2)
				m.appendJSON(b, indent+2)
			}
			newLine(b, indent+1)
			b.WriteString("]")
		default:
			fmt.Fprint(b, v)
		}
	}
	newLine(b, indent)
	b.WriteString("}")
}

func newLine(b *strings.Builder, indent int) {
	b.WriteByte('\n')
	for range indent {
		b.WriteString("  ")
	}
}

func escapeJSON(s string) string { return string(sqltype.AppendJSONString(nil, s)) }
