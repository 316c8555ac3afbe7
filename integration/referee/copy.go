package referee

import (
	"bytes"
	"context"
)

// copy puts a SELECT as a COPY in text format. Its answer's rows are the values as COPY writes them; what
// they are is what the server says of the SELECT.
func (s *session) copy(ctx context.Context, sql string, a *answer) {
	described, err := s.Prepare(ctx, "", sql, nil)
	if err != nil {
		a.note(err)
		return
	}
	s.notices = nil
	var out bytes.Buffer
	tag, err := s.CopyTo(ctx, &out, "COPY ("+sql+") TO STDOUT")
	a.fields, a.tag = described.Fields, tag.String()
	a.note(err)
	for line := range bytes.Lines(out.Bytes()) {
		values := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		for i, v := range values {
			if string(v) == `\N` {
				values[i] = nil
			}
		}
		a.rows = append(a.rows, values)
	}
}
