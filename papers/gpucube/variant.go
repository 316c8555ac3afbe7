package gpucube

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Method is an algorithm, without its options.
type Method uint8

// The methods (package comment).
const (
	Source Method = iota
	Children
	Queue
	QueueDense
	ClassesRegister
	ClassesShared
	ClassesGlobal
	ClassesHash
)

var methodNames = [...]string{"source", "cdp", "queue", "queue/dense", "classes/register", "classes/shared", "classes/global", "classes/hash"}

// Saving says how warps save additions to the hash table.
type Saving uint8

// The ways of Source (the first three) and Children (none and stride).
const (
	SaveNone    Saving = iota
	SaveShared         // section 4.2.1
	SaveShuffle        // section 5.4.1
	SaveStride         // section 4.3.4
)

var savingNames = [...]string{"", "shared", "shuffle", "stride"}

// Variant is a method and its options. Methods ignore what they have no use for.
type Variant struct {
	Method    Method
	Prefilter bool // Source, Children, Queue, QueueDense
	Saving    Saving
	Functions int  // Source, Children: hash functions for each target cell; 0: 1
	Fixed     bool // Children: child grids of one block
	Sync      bool // Children: steps are launched by the device, after all children of the one before
}

// errUnavailable says that a variant cannot be had for this query on this device; the text
// beside it says why.
var errUnavailable = errors.New("gpucube: variant not available")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUnavailable, fmt.Sprintf(format, args...))
}

// Thesis reports whether the variant is one of the thesis.
func (v Variant) Thesis() bool { return v.Method <= Children }

// String returns the variant's name: "source/prefilter/shuffle/f28".
func (v Variant) String() string {
	name := methodNames[v.Method]
	if v.Prefilter && v.Method <= QueueDense {
		name += "/prefilter"
	}
	if v.Thesis() {
		if v.Fixed && v.Method == Children {
			name += "/fixed"
		}
		if v.Saving != SaveNone {
			name += "/" + savingNames[v.Saving]
		}
		if v.Sync && v.Method == Children {
			name += "/sync"
		}
		name += "/f" + strconv.Itoa(max(v.Functions, 1))
	}
	return name
}

// parseVariant is the inverse of String.
func parseVariant(name string) (Variant, error) {
	var v Variant
	rest, found := name, false
	for m := len(methodNames) - 1; m >= 0 && !found; m-- {
		if rest, found = strings.CutPrefix(name, methodNames[m]); found {
			v.Method = Method(m)
		}
	}
	if !found {
		return v, fmt.Errorf("gpucube: no variant %q", name)
	}
	for _, option := range strings.Split(rest, "/")[1:] {
		switch option {
		case "prefilter":
			v.Prefilter = true
		case "fixed":
			v.Fixed = true
		case "sync":
			v.Sync = true
		case savingNames[SaveShared]:
			v.Saving = SaveShared
		case savingNames[SaveShuffle]:
			v.Saving = SaveShuffle
		case savingNames[SaveStride]:
			v.Saving = SaveStride
		default:
			n, err := strconv.Atoi(strings.TrimPrefix(option, "f"))
			if err != nil || n < 1 || !strings.HasPrefix(option, "f") {
				return v, fmt.Errorf("gpucube: no option %q of a variant", option)
			}
			v.Functions = n
		}
	}
	if v.String() != name {
		return v, fmt.Errorf("gpucube: no variant %q", name)
	}
	return v, nil
}

// Variants lists what comparisons run: ours, those first that are fast where they can be
// had, and all choices of the thesis, with the numbers of hash functions that its tables
// found best for some query.
func Variants() []Variant {
	var all []Variant
	for _, m := range []Method{ClassesRegister, ClassesShared, ClassesGlobal, ClassesHash, QueueDense, Queue} {
		all = append(all, Variant{Method: m, Prefilter: m <= QueueDense})
	}
	all = append(all, Variant{Method: Source})
	for _, f := range []int{1, 4, 28, 512, 3072} {
		for _, s := range []Saving{SaveNone, SaveShared, SaveShuffle} {
			all = append(all, Variant{Method: Source, Prefilter: true, Saving: s, Functions: f})
		}
	}
	for _, f := range []int{4, 48, 108} {
		for _, s := range []Saving{SaveNone, SaveStride} {
			for _, fixed := range []bool{false, true} {
				for _, sync := range []bool{false, true} {
					all = append(all, Variant{Method: Children, Prefilter: true, Saving: s, Functions: f, Fixed: fixed, Sync: sync})
				}
			}
		}
	}
	return all
}
