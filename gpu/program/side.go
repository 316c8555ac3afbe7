package program

// PackBits returns a set of StepBits as device memory has it: 32-bit words, padded to 16
// bytes.
func PackBits(b *Bits) []byte { panic("TODO") }

// PackSet returns a set of OpIn: its values.
func PackSet(values []int64) []byte { panic("TODO") }

// PackTable returns a table: values (int32, or int64 where Wide), nulls, faults, each
// padded to 16 bytes.
func PackTable(t Table, d *TableData) []byte { panic("TODO") }

// PackLookup returns a lookup: a bitmap of the keys that have a partner, then entries; of
// LookupHash keys, then entries. Each is padded to 16 bytes.
func PackLookup(l *Lookup, d *LookupData) []byte { panic("TODO") }

// BuiltBytes is the size of the lookup that q's SinkBuild makes, in PackLookup's layout.
func BuiltBytes(q *Query) int64 { panic("TODO") }

// PackOuts returns what a lookup delivers: of each output values (int32, or int64 where
// Wide) and, where it is Nullable, nulls, each padded to 16 bytes.
func PackOuts(l *Lookup, d *LookupData) []byte { panic("TODO") }
