package cube

// Sample is what is known of a query before it runs.
type Sample struct {
	Vectors  int     // that were looked at
	Relevant float64 // share of their cells
	Targets  float64 // of a relevant cell, on average
	Spread   float64 // the most that a relevant cell had, over the average
	Repeats  float64 // neighbours in a vector that meet in their first target, as a share
}

func (q *Query[N]) sample() {}

// Choose returns the variant that is expected to be the fastest.
func (q *Query[N]) Choose() Variant { return Variant{Method: ClassesShared} }
