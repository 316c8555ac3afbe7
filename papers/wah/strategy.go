package wah

import "fmt"

// Strategy is a way to answer a range query, the union of bins, on the device.
type Strategy int

// The strategies. The first four are the papers': columns are decompressed into device
// memory (Algorithms 1 and 2), then reduced. Fused and Cut are ours: one kernel, no
// decompressed columns.
const (
	COA         Strategy = iota // Algorithm 3: column-oriented access
	ROA                         // Algorithm 4: row-oriented access, 2,048 bins at most
	Hybrid                      // Algorithm 5: tiles of hybridSpan columns, rounds until one is left
	IdealHybrid                 // Algorithm 6: a tile spans all columns, 2,048 bins at most
	Fused
	Cut // as Fused, of atoms that are cut at tiles and lie tile after tile
	strategies
)

var strategyNames = [...]string{"COA", "ROA", "hybrid", "ideal hybrid", "fused", "fused, cut"}

// allStrategies are all of them.
func allStrategies() []Strategy {
	var all []Strategy
	for s := range strategies {
		all = append(all, s)
	}
	return all
}

// String is the strategy's name, as wahbits.Strategy has it.
func (s Strategy) String() string {
	if uint(s) < uint(len(strategyNames)) {
		return strategyNames[s]
	}
	return fmt.Sprintf("Strategy(%d)", int(s))
}

// parseStrategy is the inverse of String.
func parseStrategy(name string) (Strategy, error) {
	for s, n := range strategyNames {
		if n == name {
			return Strategy(s), nil
		}
	}
	return 0, fmt.Errorf("there is no strategy %q: it is one of %q", name, strategyNames)
}
