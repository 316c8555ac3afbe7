package sqltype

import (
	"encoding/binary"
	"strconv"
	"strings"

	"pgaccel/vector"
)

// maxArrayText bounds the text of an array that is read here.
const maxArrayText = 64 << 20

// parseArray reads the forms that array_out writes, and those of array_in that differ by blanks and
// needless quotes. Others are left: ok is false.
func parseArray(s string, elem *Type) (array string, ok bool) {
	p := arrayParser{rest: strings.Trim(s, Space), elem: elem}
	if len(s) > maxArrayText || !p.bounds() {
		return "", false
	}
	p.elements = NewArray(vector.TypeOf(elem.Kind))
	if !p.slice(0) || p.rest != "" {
		return "", false
	}
	return p.array()
}

type arrayParser struct {
	rest           string
	elem           *Type
	lengths, lower [maxDimensions]int32 // length 0: not known yet
	written        int                  // bounds that are written
	dims           int
	elements       *Array
}

// bounds reads [1:2][0:4]=, where that is written.
func (p *arrayParser) bounds() bool {
	if !strings.HasPrefix(p.rest, "[") {
		for i := range p.lower {
			p.lower[i] = 1
		}
		return true
	}
	for strings.HasPrefix(p.rest, "[") {
		text, rest, found := strings.Cut(p.rest[1:], "]")
		from, to, pair := strings.Cut(text, ":")
		lo, loErr := strconv.ParseInt(from, 10, 32)
		hi, hiErr := strconv.ParseInt(to, 10, 32)
		n := hi - lo + 1
		if !found || !pair || loErr != nil || hiErr != nil || n < 1 || n > maxArrayText || p.written == maxDimensions {
			return false
		}
		p.lower[p.written], p.lengths[p.written], p.rest = int32(lo), int32(n), rest
		p.written++
	}
	rest, ok := strings.CutPrefix(p.rest, "=")
	p.rest = rest
	return ok
}

// slice reads what is between the braces of one dimension.
func (p *arrayParser) slice(dim int) bool {
	if dim == maxDimensions || !p.take('{') {
		return false
	}
	p.blanks()
	if p.take('}') {
		return dim == 0 && p.written == 0 // no elements, no dimensions
	}
	n := int32(0)
	for {
		p.blanks()
		if strings.HasPrefix(p.rest, "{") {
			if p.dims != 0 && dim+1 >= p.dims || !p.slice(dim+1) {
				return false
			}
		} else {
			if p.dims == 0 {
				p.dims = dim + 1
			}
			if dim+1 != p.dims || !p.element() {
				return false
			}
		}
		n++
		p.blanks()
		if p.take(',') {
			continue
		}
		if !p.take('}') {
			return false
		}
		if p.lengths[dim] == 0 {
			p.lengths[dim] = n
		}
		return p.lengths[dim] == n
	}
}

func (p *arrayParser) blanks() { p.rest = strings.TrimLeft(p.rest, Space) }

func (p *arrayParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// element reads an element: in quotes, or up to a comma or a brace.
func (p *arrayParser) element() bool {
	if !p.take('"') {
		end := strings.IndexAny(p.rest, `,{}"\`)
		if end < 0 || p.rest[end] != ',' && p.rest[end] != '}' {
			return false
		}
		text := strings.TrimRight(p.rest[:end], Space)
		if p.rest = p.rest[end:]; text == "" {
			return false
		}
		if isNullWord(text) {
			p.elements.Add(vector.NullValue)
			return true
		}
		return p.value(text)
	}
	var text []byte
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '"':
			p.rest = p.rest[i+1:]
			return p.value(string(text))
		case '\\':
			if i++; i == len(p.rest) {
				return false
			}
		}
		text = append(text, p.rest[i])
	}
	return false
}

// value adds an element by its text.
func (p *arrayParser) value(text string) bool {
	d, ok := p.elem.Parse(TrimSpace(p.elem.Kind, text))
	if ok {
		p.elements.Add(d.Value())
	}
	return ok
}

// array is what was read.
func (p *arrayParser) array() (string, bool) {
	if p.elements.Len() == 0 {
		return p.elements.String(), true
	}
	one := p.elements.String()
	b := append(make([]byte, 0, len(one)+8*p.dims), one[:arrayHeader]...)
	b[3] = byte(p.dims)
	for i := range p.dims {
		b = binary.BigEndian.AppendUint32(b, uint32(p.lengths[i]))
		b = binary.BigEndian.AppendUint32(b, uint32(p.lower[i]))
	}
	return string(append(b, one[arrayHeader+8:]...)), p.written == 0 || p.written == p.dims
}
