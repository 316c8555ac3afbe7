package colstore

// Dict is the dictionary of a text column: distinct strings and their codes
// 0..Len-1, in no particular order.
type Dict struct{}

// Len returns the number of distinct strings.
func (d *Dict) Len() int { return 0 }

// At returns the string of a code. The string is a copy on Go's heap.
func (d *Dict) At(code int64) string { return "" }

// Find returns the code of a string.
func (d *Dict) Find(s string) (code int64, ok bool) { return 0, false }

// Ranks returns the rank of each code in the column's collation; nil where it is
// not known. For C collations it is always known after Finish.
func (d *Dict) Ranks() []int32 { return nil }

// SetRanks sets the ranks, before Publish. It takes over the slice.
func (d *Dict) SetRanks(r []int32) {}
