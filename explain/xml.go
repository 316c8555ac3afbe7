package explain

import (
	"fmt"
	"strings"
)

// xml writes a statement in FORMAT XML.
func (g group) xml() string {
	var b strings.Builder
	b.WriteString(`<explain xmlns="http://www.postgresql.org/2009/explain">` + "\n  <Query>")
	g.appendXML(&b, 2)
	b.WriteString("\n  </Query>\n</explain>")
	return b.String()
}

func (g group) appendXML(b *strings.Builder, indent int) {
	for _, f := range g {
		tag := strings.ReplaceAll(f.Key, " ", "-")
		newLine(b, indent)
		fmt.Fprintf(b, "<%s>", tag)
		switch v := f.Value.(type) {
		case string:
			b.WriteString(escapeXML(v))
		case []string:
			for _, s := range v {
				newLine(b, indent+1)
				b.WriteString("<Item>" + escapeXML(s) + "</Item>")
			}
			newLine(b, indent)
		case group:
			v.appendXML(b, indent+1)
			newLine(b, indent)
		case list:
			for _, m := range v.groups {
				newLine(b, indent+1)
				b.WriteString("<" + v.name + ">")
				m.appendXML(b, indent+2)
				newLine(b, indent+1)
				b.WriteString("</" + v.name + ">")
			}
			newLine(b, indent)
		default:
			fmt.Fprint(b, v)
		}
		b.WriteString("</" + tag + ">")
	}
}

// escapeXML writes a string as escape_xml does. Control characters, which XML has no words for, are question
// marks.
func escapeXML(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			return '?'
		}
		return r
	}, s)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#x0d;").Replace(s)
}
