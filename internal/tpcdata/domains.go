package tpcdata

import (
	"fmt"
	"slices"
)

// The value domains of TPC-H, clause 4.2.2.13, which the Star Schema Benchmark keeps.

// Regions are in the order of TPC-H's region keys.
var Regions = []string{"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"}

// Nations are in the order of TPC-H's nation keys.
var Nations = [25]struct {
	Name   string
	Region int // index into Regions
}{
	{"ALGERIA", 0}, {"ARGENTINA", 1}, {"BRAZIL", 1}, {"CANADA", 1}, {"EGYPT", 4},
	{"ETHIOPIA", 0}, {"FRANCE", 3}, {"GERMANY", 3}, {"INDIA", 2}, {"INDONESIA", 2},
	{"IRAN", 4}, {"IRAQ", 4}, {"JAPAN", 2}, {"JORDAN", 4}, {"KENYA", 0},
	{"MOROCCO", 0}, {"MOZAMBIQUE", 0}, {"PERU", 1}, {"CHINA", 2}, {"ROMANIA", 3},
	{"SAUDI ARABIA", 4}, {"VIETNAM", 2}, {"RUSSIA", 3}, {"UNITED KINGDOM", 3}, {"UNITED STATES", 1},
}

var (
	Segments   = []string{"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"}
	Priorities = []string{"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"}
	ShipModes  = []string{"REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP"}

	// A part's type is a class, a finish and a metal.
	TypeClasses = []string{"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"}
	TypeFinish  = []string{"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"}
	TypeMetals  = []string{"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"}

	// A part's container is a size and a kind.
	containerSizes = []string{"SM", "LG", "MED", "JUMBO", "WRAP"}
	containerKinds = []string{"CASE", "BOX", "BAG", "JAR", "PACK", "PKG", "CAN", "DRUM"}
)

// Colors are the words of which parts' names are made.
var Colors = []string{
	"almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue", "blush",
	"brown", "burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral", "cornflower", "cornsilk", "cream",
	"cyan", "dark", "deep", "dim", "dodger", "drab", "firebrick", "floral", "forest", "frosted",
	"gainsboro", "ghost", "goldenrod", "green", "grey", "honeydew", "hot", "indian", "ivory", "khaki",
	"lace", "lavender", "lawn", "lemon", "light", "lime", "linen", "magenta", "maroon", "medium",
	"metallic", "midnight", "mint", "misty", "moccasin", "navajo", "navy", "olive", "orange", "orchid",
	"pale", "papaya", "peach", "peru", "pink", "plum", "powder", "puff", "purple", "red",
	"rose", "rosy", "royal", "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate",
	"smoke", "snow", "spring", "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat",
	"white", "yellow",
}

// addressLetters has 64 members, so that an address takes 6 random bits a letter.
const addressLetters = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,"

// DrawColors fills c with different indexes into Colors.
func DrawColors(r *Rand, c []int) {
	for i := range c {
		for c[i] = r.Below(len(Colors)); slices.Contains(c[:i], c[i]); {
			c[i] = r.Below(len(Colors))
		}
	}
}

// AppendPartType writes one of the 150 types of parts.
func AppendPartType(b []byte, r *Rand) []byte {
	return appendWords(b, r.Word(TypeClasses), r.Word(TypeFinish), r.Word(TypeMetals))
}

// AppendContainer writes one of the 40 containers.
func AppendContainer(b []byte, r *Rand) []byte {
	return appendWords(b, r.Word(containerSizes), r.Word(containerKinds))
}

// appendWords writes words with blanks between them.
func appendWords(b []byte, words ...string) []byte {
	for i, w := range words {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, w...)
	}
	return b
}

// AppendAddress writes shortest to longest random letters, digits, blanks and commas.
func AppendAddress(b []byte, r *Rand, shortest, longest int) []byte {
	var word uint64
	for i := range r.Between(shortest, longest) {
		if i%10 == 0 {
			word = r.Next()
		}
		b = append(b, addressLetters[word&63])
		word >>= 6
	}
	return b
}

// AppendPhone writes a phone number, which begins with the country code of a nation.
func AppendPhone(b []byte, r *Rand, nation int) []byte {
	return fmt.Appendf(b, "%02d-%03d-%03d-%04d", CountryCode(nation), r.Between(100, 999), r.Between(100, 999), r.Between(1000, 9999))
}

// CountryCode is what phone numbers of a nation, an index into Nations, begin with.
func CountryCode(nation int) int { return 10 + nation }

// RetailPrice is a part's, in hundredths.
func RetailPrice(partkey int) int { return 90000 + partkey/10%20001 + 100*(partkey%1000) }

// OrderKey spreads order numbers over the keys: 8 of every 32 are used.
func OrderKey(number int) int { return number>>3<<5 | number&7 }
