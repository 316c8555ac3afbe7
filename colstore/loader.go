package colstore

// Loader builds one version of a table from a copy.
type Loader struct{}

// Writer takes rows of one stream of a copy. It belongs to one goroutine.
type Writer struct{}

// NewWriter adds a writer. Rows of one writer keep their order; writers' rows
// follow each other in the order of the NewWriter calls.
func (l *Loader) NewWriter() *Writer { return nil }

// Rows returns the rows ended so far by all writers.
func (l *Loader) Rows() int64 { return 0 }

// Finish returns the version, with one reference. All writers must be closed.
func (l *Loader) Finish() (*Table, error) { return nil, nil }

// Abort gives back all memory. It may be called at any time after the writers
// have stopped, also after a failed Finish.
func (l *Loader) Abort() {}

// Null sets column col (a position in meta.Columns) of the row at hand to null.
func (w *Writer) Null(col int) {}

// Int sets a column that is not text, in vector's 64-bit representation.
func (w *Writer) Int(col int, v int64) {}

// Text sets a text column. b is copied.
func (w *Writer) Text(col int, b []byte) {}

// EndRow ends the row. Every copied column must have been set. The error is a
// *MemoryError (errors.As) where the limit is reached.
func (w *Writer) EndRow() error { return nil }

// Close encodes the rows that are left.
func (w *Writer) Close() error { return nil }

// Retain adds a reference.
func (t *Table) Retain() {}

// Release gives a reference back; at zero the memory returns to the store.
func (t *Table) Release() {}
