package replica

import (
	"fmt"
	"slices"
	"strings"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/replica/pgoutput"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// rowDecoder makes store rows of the stream's tuples for one relation: a table, or a
// leaf partition of one. It belongs to one goroutine.
type rowDecoder struct {
	rel    *pgoutput.Relation
	fields []rowField // columns that are copied, then those that are hashed
	copied int        // how many are copied
	old    *colstore.Row
	new    *colstore.Row
	hash   identityHash
}

// rowField is a value of the tuple that is needed.
type rowField struct {
	columnDecoder
	at   int  // position in the tuple
	key  bool // of the replica identity
	kind vector.Kind
}

// misfitError says that a relation's definition in the stream is not the one that the
// table is copied under: its definition has changed.
type misfitError struct{ reason string }

func (e *misfitError) Error() string { return "the stream says that " + e.reason }

// Is makes it errDefinition.
func (e *misfitError) Is(target error) bool { return target == errDefinition }

func misfit(format string, args ...any) error { return &misfitError{fmt.Sprintf(format, args...)} }

// columnOrder is Part.Columns of a table.
func columnOrder(t *catalog.Table) string {
	var b strings.Builder
	for i := range t.Columns {
		b.WriteString(t.Columns[i].Name)
		b.WriteByte(0)
	}
	return b.String()
}

// inOrder reports whether rel has its columns in the order that the definition gives
// them. Where columns have exchanged their names, a definition of before or after
// would else take one's values for the other's.
func inOrder(rel *pgoutput.Relation, t *catalog.Table) bool {
	order := columnOrder(t)
	if i := slices.IndexFunc(t.Parts, func(p catalog.Part) bool { return p.OID == rel.OID }); i >= 0 {
		order = t.Parts[i].Columns
	}
	at := 0
	names := strings.Split(order, "\x00")
	for i := range rel.Columns {
		for at < len(names) && names[at] != rel.Columns[i].Name { // generated, or not published
			at++
		}
		if at++; at > len(names) {
			return false
		}
	}
	return true
}

// newRowDecoder compiles a decoder of rel's tuples into rows of t. Columns are matched
// by name: a leaf partition may have them in another order than its parent. That
// order must be the definition's all the same. errors.Is finds
// errDefinition where rel does not fit t. A table without Identity and IdentityFull is
// one whose identity is of no use: the stream's may be any.
func newRowDecoder(rel *pgoutput.Relation, t *catalog.Table) (*rowDecoder, error) {
	position := make(map[string]int, len(rel.Columns))
	for i, c := range rel.Columns {
		position[c.Name] = i
		if t.Column(c.Name) < 0 {
			return nil, misfit("it has a column %q", c.Name)
		}
	}
	if !inOrder(rel, t) {
		return nil, misfit("its columns have another order")
	}
	if full := rel.ReplicaIdentity == 'f'; full != t.IdentityFull {
		return nil, misfit("its replica identity is %q", rel.ReplicaIdentity)
	}
	d := &rowDecoder{rel: rel, old: colstore.NewRow(t), new: colstore.NewRow(t)}
	hashed := hashedIdentity(t)
	for col := range t.Columns {
		c := &t.Columns[col]
		at, sent := position[c.Name]
		identity := t.IdentityFull || slices.Contains(t.Identity, col)
		needed := isCopied(c) || slices.Contains(hashed, col)
		if !sent {
			if needed {
				return nil, misfit("it has no column %q", c.Name)
			}
			continue // generated, or left out of the publication
		}
		r := &rel.Columns[at]
		if r.TypeOID != c.TypeOID {
			return nil, misfit("column %q has the type %d", c.Name, r.TypeOID)
		}
		if r.Key != identity && len(t.Identity) > 0 {
			return nil, misfit("its replica identity is not the same: column %q", c.Name)
		}
		if !needed {
			continue
		}
		// Of other types the modifier does not change what a value is; a column of a domain has none.
		if k := c.Type.Kind; isCopied(c) && (k == vector.Numeric || k == vector.BPChar) && !c.Domain && r.Typmod != c.Type.Typmod {
			return nil, misfit("column %q has the type modifier %d", c.Name, r.Typmod)
		}
		if isCopied(c) {
			d.fields = append(d.fields, rowField{columnDecoder: newColumnDecoder(t, col), at: at, key: identity, kind: c.Type.Kind})
		}
	}
	d.copied = len(d.fields)
	for _, col := range hashed {
		d.fields = append(d.fields, rowField{columnDecoder: newColumnDecoder(t, col), at: position[t.Columns[col].Name], key: true})
	}
	return d, nil
}

// insert decodes an inserted row. Rows are valid until the next call.
//
// Errors of insert, update and delete are *columnError where a value cannot be held
// (NaN in a numeric column), and otherwise say what is wrong with the tuple.
func (d *rowDecoder) insert(tuple pgoutput.Tuple) (*colstore.Row, error) {
	if err := d.decode(d.new, tuple, pgoutput.OldFull, nil); err != nil {
		return nil, err
	}
	return d.new, nil
}

// update decodes a changed row; old is nil where the new row has the old one's
// identity.
func (d *rowDecoder) update(oldTuple pgoutput.Tuple, kind pgoutput.OldKind, tuple pgoutput.Tuple) (old, row *colstore.Row, err error) {
	if kind != pgoutput.OldNone {
		if old, err = d.delete(oldTuple, kind); err != nil {
			return nil, nil, err
		}
	}
	if err = d.decode(d.new, tuple, pgoutput.OldFull, oldTuple); err != nil {
		return nil, nil, err
	}
	return old, d.new, nil
}

// delete decodes the old row of a delete.
func (d *rowDecoder) delete(tuple pgoutput.Tuple, kind pgoutput.OldKind) (*colstore.Row, error) {
	if kind == pgoutput.OldNone {
		return nil, fmt.Errorf("a change without the old row")
	}
	if err := d.decode(d.old, tuple, kind, nil); err != nil {
		return nil, err
	}
	return d.old, nil
}

// decode fills row from tuple; OldKey takes the columns of the replica identity only,
// as the tuple's others are null without meaning it. before is the old tuple, if one
// was sent: it has the values that are unchanged and hashed.
func (d *rowDecoder) decode(row *colstore.Row, tuple pgoutput.Tuple, kind pgoutput.OldKind, before pgoutput.Tuple) error {
	if len(tuple) != len(d.rel.Columns) {
		return fmt.Errorf("a row of %d columns, want %d", len(tuple), len(d.rel.Columns))
	}
	for i := range d.fields[:d.copied] {
		f := &d.fields[i]
		v := &tuple[f.at]
		switch {
		case kind == pgoutput.OldKey && !f.key:
			row.State[f.col] = colstore.ColumnAbsent
		case v.Kind == pgoutput.ValueBinary:
			row.State[f.col] = colstore.ColumnValue
			if f.kind == vector.JSONB {
				text, err := f.jsonb(v.Data)
				if err != nil {
					return err
				}
				row.Text[f.col] = text
				continue
			}
			if f.form == sqltype.BinaryKey {
				key, err := f.keyed(v.Data)
				if err != nil {
					return err
				}
				row.Text[f.col] = key
				continue
			}
			if f.form == sqltype.BinaryNumericKey {
				key, err := f.numericKey(row.Text[f.col], v.Data) // old and new rows have memory of their own
				if err != nil {
					return err
				}
				row.Text[f.col] = key
				continue
			}
			if f.kind.IsArray() {
				if err := f.array(v.Data); err != nil {
					return err
				}
			}
			if f.form == sqltype.BinaryText {
				if err := f.columnDecoder.text(v.Data); err != nil {
					return err
				}
			}
			if f.kind.IsString() {
				row.Text[f.col] = v.Data
				continue
			}
			n, err := f.value(v.Data)
			if err != nil {
				return err
			}
			row.Int[f.col] = n
		case v.Kind == pgoutput.ValueNull:
			row.State[f.col] = colstore.ColumnNull
		case v.Kind == pgoutput.ValueUnchanged:
			row.State[f.col] = colstore.ColumnUnchanged
		default:
			row.State[f.col] = colstore.ColumnValue
			if err := f.text(row, v.Data); err != nil {
				return err
			}
		}
	}
	if d.copied == len(d.fields) {
		return nil
	}
	d.hash.reset()
	for i := range d.fields[d.copied:] {
		f := &d.fields[d.copied+i]
		v := &tuple[f.at]
		if v.Kind == pgoutput.ValueUnchanged && before != nil {
			v = &before[f.at]
		}
		switch v.Kind {
		case pgoutput.ValueNull:
			d.hash.null()
		case pgoutput.ValueBinary:
			d.hash.value(v.Data)
		default:
			return fmt.Errorf("a value of identity column %d comes in a form (%q) that cannot be compared", f.col+1, v.Kind)
		}
	}
	row.Identity = d.hash.sum()
	return nil
}
