//go:build tuning

package program

// Choices are what TuningFor decides by measurements, for a program that measures. Its tag
// keeps it out of the product.
type Choices struct {
	Carries, Windows, Search, Together bool
	Rows, Threads, Blocks              int
}

// Choose makes TuningFor decide so from now on. No query may be running.
func Choose(c Choices) {
	chosen = choices{carries: c.Carries, windows: c.Windows, search: c.Search, together: c.Together, rows: c.Rows,
		threads: c.Threads, blocks: c.Blocks}
}
