package catalog

import (
	"cmp"
	"slices"
)

// Enum is an enum type. It is immutable once built.
type Enum struct {
	OID          uint32
	Schema, Name string
	Labels       []Label // in the order of the type
}

// Label is a row of pg_enum. A stored value is its OID: ALTER TYPE ... RENAME VALUE gives rows
// another label that no change of theirs tells of.
type Label struct {
	OID  uint32
	XMin uint32 // of the row, by which one that was changed is known
	Text string
}

// Has reports whether the type has a label.
func (e *Enum) Has(label string) bool {
	return slices.ContainsFunc(e.Labels, func(l Label) bool { return l.Text == label })
}

// Ranks returns the places of distinct labels among each other, nil where one of them is none.
func (e *Enum) Ranks(labels []string) []int32 {
	at := make(map[string]int, len(labels))
	for i, s := range labels {
		at[s] = i
	}
	ranks := make([]int32, len(labels))
	next := 0
	for _, l := range e.Labels {
		if i, ok := at[l.Text]; ok {
			ranks[i] = int32(next)
			next++
		}
	}
	if next < len(labels) {
		return nil
	}
	return ranks
}

// sameLabels reports whether rows that were brought as labels of a are the same as labels of b: b has
// all rows of pg_enum that a has, untouched, and in their order. A label that was renamed and renamed
// back was another one meanwhile.
func sameLabels(a, b *Enum) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.OID != b.OID {
		return false
	}
	last := -1
	for _, l := range a.Labels {
		at := slices.Index(b.Labels, l)
		if at <= last {
			return false
		}
		last = at
	}
	return true
}

// SameLabels reports whether the labels that rows have of columns of enums are right under two
// definitions of a table with the same columns.
func SameLabels(a, b *Table) bool {
	return slices.EqualFunc(a.Columns, b.Columns, func(x, y Column) bool { return sameLabels(x.Enum, y.Enum) })
}

// Enum returns the enum type with the OID, nil where no table has a column of it.
func (c *Catalog) Enum(oid uint32) *Enum {
	i, found := slices.BinarySearchFunc(c.Enums, oid, func(e *Enum, oid uint32) int { return cmp.Compare(e.OID, oid) })
	if !found {
		return nil
	}
	return c.Enums[i]
}
