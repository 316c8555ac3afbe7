package explain

import (
	"fmt"
	"strings"
)

// yaml writes a statement in FORMAT YAML. Strings are those of JSON, which YAML has, too.
func (g group) yaml() string {
	var b strings.Builder
	b.WriteString("- ")
	g.appendYAML(&b, 1)
	return b.String()
}

// appendYAML writes the fields, the first behind what stands in the line already.
func (g group) appendYAML(b *strings.Builder, indent int) {
	for i, f := range g {
		if i > 0 {
			newLine(b, indent)
		}
		b.WriteString(f.Key + ": ")
		switch v := f.Value.(type) {
		case string:
			b.WriteString(escapeJSON(v))
		case []string:
			for _, s := range v {
				newLine(b, indent+1)
				b.WriteString("- " + escapeJSON(s))
			}
		case group:
			newLine(b, indent+1)
			v.appendYAML(b, indent+1)
		case list:
			for _, m := range v.groups {
				newLine(b, indent+1)
				b.WriteString("- ")
				m.appendYAML(b, indent+2)
			}
		default:
			fmt.Fprint(b, v)
		}
	}
}
