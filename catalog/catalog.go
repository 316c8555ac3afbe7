package catalog

import (
	"slices"

	"pgaccel/vector"
)

// Column is one column of a table, in attnum order and without dropped ones.
type Column struct {
	Name    string
	AttNum  int16 // pg_attribute.attnum
	TypeOID uint32
	Type    vector.Type
	NotNull bool
	// Domain says that the type is a domain; Type is that of its values.
	Domain bool `json:",omitempty"`
	// Enum is the type, where that is one.
	Enum *Enum `json:",omitempty"`
	// Unsupported says why the column is not copied; empty where it is. Queries
	// that read such a column are forwarded, the table's others are not.
	Unsupported string
}

// Index is a valid index of a table over plain columns.
type Index struct {
	Name    string
	Columns []int // positions in Table.Columns, in key order
	// Unique is true where the server guarantees that no two rows agree on
	// Columns at any time: unique, valid, immediate, not partial, and every
	// column NOT NULL (or the index NULLS NOT DISTINCT).
	Unique bool
}

// Fingerprint identifies a table's shape and storage: the text that the server
// returns for FingerprintSQL. Two equal fingerprints mean that no rewrite,
// TRUNCATE or column change has happened between them. The parts come from
// transaction ids, which only grow, so that an old one does not come back.
type Fingerprint string

// Table is one table. It is immutable once built.
type Table struct {
	OID         uint32
	Schema      string
	Name        string
	Columns     []Column
	Indexes     []Index
	Fingerprint Fingerprint
	// Identity are the positions of the columns of the replica identity, ascending:
	// of the primary key or the index that serves as one. IdentityFull says that it is
	// the whole row (then Identity is nil).
	Identity     []int
	IdentityFull bool
	// Parts are the leaf partitions, by OID; nil where the table is not partitioned.
	Parts []Part
	// View is what a view is; nil for a table.
	View *View `json:",omitempty"` // not in manifests
	// Pages and Rows are pg_class.relpages and reltuples: estimates. Package engine plans
	// with the rows that the store has, where it has the table.
	Pages int64
	Rows  int64
}

// View is the definition of a view. Its Table has the OID, schema, name, columns (names and
// numbers) and fingerprint, and no rows of its own.
type View struct {
	// Definition is its SELECT, as pg_get_viewdef writes it for an empty search_path: all
	// that is not built in has its schema.
	Definition string
	// Role is who needs the rights on what it reads: the owner, 0 for whoever asks
	// (security_invoker).
	Role uint32
	// Barrier says that no condition of a query may see a row that it hides (security_barrier).
	Barrier bool
}

// Part is a leaf partition: its rows are the table's. Columns are matched by name.
type Part struct {
	OID          uint32
	Schema, Name string
	Fingerprint  Fingerprint
	// Columns are the names of its columns in attnum order, each followed by a zero
	// byte: the stream sends them in this order.
	Columns string
}

// HashIdentity reports whether the replica identity has columns that are not copied,
// such as an array: rows are then found by a hash of those (colstore.Row.Identity).
func (t *Table) HashIdentity() bool {
	return slices.ContainsFunc(t.Identity, func(c int) bool { return t.Columns[c].Unsupported != "" })
}

// Column returns the position of the named column, -1 where there is none.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// UniqueOn reports whether the given columns (positions, any order) contain a
// unique key of t: at most one row for each value of them. A key of a nondeterministic collation may be
// unique under another one.
func (t *Table) UniqueOn(columns []int) bool {
	for _, ix := range t.Indexes {
		if ix.Unique && !slices.ContainsFunc(ix.Columns, func(c int) bool {
			k := t.Columns[c].Type
			return !slices.Contains(columns, c) || k.Collation.OID != 0 && !k.Collation.Deterministic
		}) {
			return true
		}
	}
	return false
}

// QualifiedName returns schema.name without quoting, for people.
func (t *Table) QualifiedName() string { return t.Schema + "." + t.Name }

// Catalog is a snapshot of the chosen tables and of what in the database could
// change the meaning of a query over them. It is immutable once built.
type Catalog struct {
	Tables []*Table
	// Views are those that read one of Tables, directly or by other views.
	Views []*Table
	// Enums are the enum types of columns of Tables, by OID.
	Enums []*Enum
	// Shadowed holds the lower-case names of functions and aggregates, and the
	// operators, that exist outside pg_catalog: a query that uses one of these
	// names may not mean the built-in and is forwarded.
	Shadowed map[string]bool
	// SearchPath are the schemas in which names without one are looked for, in order; where they have none, public is, and then any.
	SearchPath []string
	// Operators is OperatorsSQL's text at the time of the catalog: while it stays, Shadowed
	// lacks no operator or cast.
	Operators string
	// ModeSet is true where the server gives some session a pgaccel.mode before the
	// session says anything: ALTER ROLE or ALTER DATABASE ... SET, postgresql.conf.
	ModeSet bool

	// The server that the tables are on.
	SystemID      string // IDENTIFY_SYSTEM's systemid: one database cluster
	ServerVersion int    // server_version_num, such as 150018
	// WALSegmentSize and WALBlockSize are in bytes; see NormalizeLSN.
	WALSegmentSize uint64
	WALBlockSize   uint64
	// OtherEncoding is true where the database's encoding is not UTF8: text is not copied, and
	// characters of constants are not counted as the server would.
	OtherEncoding bool
	// ASCIICase is true where only letters of ASCII have an upper and a lower case in the database's
	// default collation: its LC_CTYPE is C.
	ASCIICase bool
	// Collation is the database's default one; its OID is 0 where that is not known.
	Collation vector.Collation
}

// ByOID returns the table with the OID, nil where there is none.
func (c *Catalog) ByOID(oid uint32) *Table {
	for _, t := range c.Tables {
		if t.OID == oid {
			return t
		}
	}
	return nil
}

// Lookup returns the tables and views with the name, in the schema, or in any schema where
// schema is empty.
func (c *Catalog) Lookup(schema, name string) []*Table {
	var found []*Table
	for _, relations := range [][]*Table{c.Tables, c.Views} {
		for _, t := range relations {
			if t.Name == name && (schema == "" || t.Schema == schema) {
				found = append(found, t)
			}
		}
	}
	return found
}
