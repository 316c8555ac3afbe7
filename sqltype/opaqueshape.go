package sqltype

// opaqueShapes are the geometric types (src/backend/utils/adt/geo_ops.c), of coordinates that are written as float8's are.
var opaqueShapes = []Opaque{
	shape(600, "point", "(", ")", 1, "(1,2)", "(0.1,-1e300)", "(NaN,Infinity)", "(-0,1e-5)"),
	shape(601, "lseg", "[", "]", 2, "[(1,2),(3,4.5)]", "[(0,0),(0,0)]"),
	shape(603, "box", "", "", 2, "(3,4),(1,2)", "(0.5,0.25),(-1,-2)"),
	{OID: 628, Name: "line", OpaqueSettings: OpaqueSettings{Floats: true}, valid: func(r *reader) { r.take(3 * 8) }, Samples: []string{"{1,-1,0}", "{0,-1,2.5}"},
		AppendText: func(dst []byte, raw string) []byte {
			return append(appendFloats(append(dst, '{'), &reader{rest: raw}, 3), '}')
		}},
	{OID: 718, Name: "circle", OpaqueSettings: OpaqueSettings{Floats: true}, valid: func(r *reader) { r.take(3 * 8) }, Samples: []string{"<(1,2),3>", "<(0,-0.5),0>"},
		AppendText: func(dst []byte, raw string) []byte {
			r := &reader{rest: raw}
			dst = append(appendFloats(append(dst, "<("...), r, 2), "),"...)
			return append(appendFloats(dst, r, 1), '>')
		}},
	{OID: 602, Name: "path", OpaqueSettings: OpaqueSettings{Floats: true}, valid: func(r *reader) { r.byte(); r.take(int(r.int32()) * 2 * 8) }, Samples: []string{"((1,2),(3,4))", "[(1,2),(3,4),(5,6)]", "[(0.5,0)]"},
		AppendText: func(dst []byte, raw string) []byte {
			r := &reader{rest: raw}
			open, closed := byte('['), byte(']')
			if r.byte() != 0 {
				open, closed = '(', ')'
			}
			return append(appendPoints(append(dst, open), r, int(r.int32())), closed)
		}},
	{OID: 604, Name: "polygon", OpaqueSettings: OpaqueSettings{Floats: true}, valid: func(r *reader) { r.take(int(r.int32()) * 2 * 8) }, Samples: []string{"((1,2),(3,4),(5,0))", "((0,0))"},
		AppendText: func(dst []byte, raw string) []byte {
			r := &reader{rest: raw}
			return append(appendPoints(append(dst, '('), r, int(r.int32())), ')')
		}},
}

// shape is a type of so many points between two strings; a point itself has its own parentheses.
func shape(oid uint32, name, open, closed string, points int, samples ...string) Opaque {
	return Opaque{OID: oid, Name: name, OpaqueSettings: OpaqueSettings{Floats: true}, valid: func(r *reader) { r.take(points * 2 * 8) }, Samples: samples,
		AppendText: func(dst []byte, raw string) []byte {
			r := &reader{rest: raw}
			dst = append(dst, open...)
			if points == 1 {
				dst = appendFloats(dst, r, 2)
			} else {
				dst = appendPoints(dst, r, points)
			}
			return append(dst, closed...)
		}}
}

// appendPoints writes points, each in parentheses.
func appendPoints(dst []byte, r *reader, n int) []byte {
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendFloats(append(dst, '('), r, 2), ')')
	}
	return dst
}

// appendFloats writes numbers with commas between.
func appendFloats(dst []byte, r *reader, n int) []byte {
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendFloat(dst, r.int64(), 64)
	}
	return dst
}
