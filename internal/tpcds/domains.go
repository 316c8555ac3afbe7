package tpcds

import (
	"fmt"
	"slices"

	"pgaccel/internal/tpcdata"
)

// Values of columns: those that queries ask for are the specification's, the others are our own.
var (
	genders    = []string{"M", "F"}
	maritals   = []string{"M", "S", "D", "W", "U"}
	educations = []string{"Primary", "Secondary", "College", "2 yr Degree", "4 yr Degree", "Advanced Degree", "Unknown"}
	credits    = []string{"Low Risk", "Good", "High Risk", "Unknown"}
	potentials = []string{"0-500", "501-1000", "1001-5000", "5001-10000", ">10000", "Unknown"}

	modeTypes = []string{"EXPRESS", "NEXT DAY", "OVERNIGHT", "REGULAR", "TWO DAY"}
	modeCodes = []string{"AIR", "SURFACE", "SEA", "RAIL"}
	carriers  = []string{"NORTHWIND", "SWIFT", "PONY", "METEOR", "ALBATROSS", "CANAL", "HARBOR", "SUMMIT", "PRAIRIE", "LANTERN",
		"GANNET", "TUNDRA", "COMET", "MERIDIAN", "OSPREY", "DELTA", "QUARRY", "VIADUCT", "ZENITH", "BEACON"}

	salutations = [2][]string{{"Mr.", "Sir", "Dr."}, {"Ms.", "Mrs.", "Miss", "Dr."}}
	menNames    = []string{"Adam", "Brian", "Carl", "David", "Edgar", "Frank", "George", "Henry", "Ivan", "Jack", "Kevin", "Louis", "Martin", "Nathan",
		"Oscar", "Peter", "Quentin", "Robert", "Samuel", "Thomas", "Ulrich", "Victor", "Walter", "Xavier", "Yann", "Zachary"}
	womenNames = []string{"Alice", "Barbara", "Clara", "Diana", "Emma", "Fiona", "Grace", "Helen", "Irene", "Julia", "Karen", "Laura", "Maria", "Nora",
		"Olivia", "Paula", "Rachel", "Sophie", "Teresa", "Ursula", "Vera", "Wendy", "Yvonne", "Zoe"}
	lastNames = func() (names []string) {
		for _, a := range []string{"Ash", "Black", "Brook", "Clay", "Dun", "East", "Fair", "Green", "Hart", "Kings", "Lang", "Mill", "North", "Oak", "Rad", "Stan", "Thorn", "West", "Whit", "Wood"} {
			for _, b := range []string{"bury", "by", "croft", "den", "field", "ford", "ham", "ley", "man", "son", "ton", "wick", "well", "worth"} {
				names = append(names, a+b)
			}
		}
		return names
	}()
	countries = []string{"ARGENTINA", "AUSTRALIA", "BELGIUM", "BRAZIL", "CANADA", "CHILE", "DENMARK", "EGYPT", "FINLAND", "FRANCE", "GERMANY", "GREECE",
		"HUNGARY", "ICELAND", "INDIA", "IRELAND", "ITALY", "JAPAN", "KENYA", "MEXICO", "NORWAY", "PERU", "POLAND", "PORTUGAL", "SPAIN", "SWEDEN", "UNITED STATES", "VIETNAM"}

	streetNames = []string{"Ash", "Birch", "Cedar", "Church", "Dogwood", "Elm", "First", "Forest", "Highland", "Hill", "Jackson", "Lake", "Laurel", "Lincoln",
		"Main", "Maple", "Meadow", "Mill", "North", "Oak", "Park", "Pine", "Poplar", "Ridge", "River", "Second", "Spring", "Sunset", "Third", "View", "Walnut", "Willow"}
	streetTypes = []string{"Avenue", "Blvd", "Circle", "Court", "Drive", "Lane", "Parkway", "Road", "Street", "Way"}
	cities      = func() (names []string) {
		for _, b := range []string{"ville", "dale", "view", "ton", "port", "burg"} {
			for _, a := range []string{"Mid", "Fair", "Oak", "Pleasant", "Green", "Spring", "Union", "Clear", "Salem", "Center", "Five", "Glen", "Harmon", "Lake", "Mount", "New"} {
				names = append(names, a+b)
			}
		}
		return names
	}()
	locations = []string{"apartment", "condo", "single family"}

	units      = []string{"Each", "Dozen", "Case", "Pallet", "Gross", "Pound", "Ounce", "Ton", "Box", "Bundle", "Carton", "Cup", "Dram", "Gram", "Lb", "Oz", "Tbl", "Tsp", "Unknown", "N/A"}
	itemSizes  = []string{"small", "medium", "large", "extra large", "economy", "petite", "N/A"}
	shopNames  = []string{"able", "bold", "calm", "dear", "ease", "fair"}
	shopHours  = []string{"8AM-8PM", "8AM-4PM", "8AM-12AM"}
	classSizes = []string{"small", "medium", "large"}
	pageTypes  = []string{"order", "general", "protected", "feedback", "welcome", "ad", "dynamic"}
	reasons    = []string{"damaged in transit", "wrong size", "wrong color", "came too late", "found it cheaper", "no longer needed", "parts are missing",
		"not as described", "gift that was not wanted", "ordered twice", "stopped working"}
)

// state has as many addresses as its weight says; its counties are numbered.
type state struct {
	code             string
	weight, counties int
	offset           int // hours from GMT
}

var states = []state{
	{"TX", 25, 25, -6}, {"GA", 16, 16, -5}, {"VA", 13, 13, -5}, {"KY", 12, 12, -5}, {"MO", 11, 11, -6}, {"KS", 11, 10, -6}, {"IL", 10, 10, -6}, {"NC", 10, 10, -5},
	{"IA", 10, 10, -6}, {"TN", 10, 9, -6}, {"NE", 9, 9, -6}, {"IN", 9, 9, -5}, {"OH", 9, 8, -5}, {"MN", 9, 8, -6}, {"MI", 8, 8, -5}, {"MS", 8, 8, -6},
	{"OK", 8, 7, -6}, {"AR", 7, 7, -6}, {"WI", 7, 7, -6}, {"PA", 7, 6, -5}, {"AL", 7, 6, -6}, {"FL", 7, 6, -5}, {"SD", 7, 6, -7}, {"LA", 6, 6, -6},
	{"CO", 6, 6, -7}, {"NY", 6, 6, -5}, {"CA", 6, 5, -8}, {"MT", 6, 5, -7}, {"WV", 5, 5, -5}, {"ND", 5, 5, -6}, {"SC", 5, 4, -5}, {"ID", 4, 4, -7},
	{"WA", 4, 4, -8}, {"OR", 4, 3, -8}, {"NM", 3, 3, -7}, {"UT", 3, 3, -7}, {"WY", 2, 2, -7}, {"NV", 2, 2, -8}, {"ME", 2, 2, -5}, {"AZ", 2, 2, -7},
	{"VT", 1, 1, -5}, {"NJ", 2, 2, -5}, {"NH", 1, 1, -5}, {"MA", 1, 1, -5}, {"CT", 1, 1, -5}, {"DE", 1, 1, -5}, {"RI", 1, 1, -5}, {"HI", 1, 1, -10}, {"AK", 2, 2, -9}, {"DC", 1, 1, -5},
}

// shopStates are the states that have shops, call centers and warehouses.
const shopStates = 8

// weighted are the states, each as often as its weight.
var weighted = func() (of []int) {
	for i, s := range states {
		for range s.weight {
			of = append(of, i)
		}
	}
	return of
}()

// county is a name of the nth of a state: some names are of several states, as in reality.
func county(state, n int) string { return cities[(state*5+n*7)%len(cities)] + " County" }

// category is one of the item hierarchy's first level, with its classes.
type category struct {
	name    string
	classes []string
}

var categories = []category{
	{"Women", []string{"blouses", "coats", "dresses", "perfume", "skirts", "swimwear"}},
	{"Men", []string{"belts", "jackets", "shirts", "suits", "trousers"}},
	{"Children", []string{"babies", "pyjamas", "school", "toddlers"}},
	{"Shoes", []string{"boots", "running", "sandals", "slippers"}},
	{"Music", []string{"classical", "folk", "jazz", "pop", "rock"}},
	{"Jewelry", []string{"bracelets", "brooches", "chains", "earrings", "gold", "pearls", "rings", "silver", "watches"}},
	{"Home", []string{"bathroom", "bedding", "carpets", "chairs", "curtains", "glass", "kitchen", "lamps", "paint", "tables"}},
	{"Sports", []string{"archery", "camping", "cycling", "fishing", "football", "golf", "hockey", "sailing", "skiing", "tennis"}},
	{"Books", []string{"art", "business", "children", "cooking", "fiction", "history", "mystery", "nature", "reference", "science", "travel"}},
	{"Electronics", []string{"audio", "cameras", "computers", "games", "memory", "monitors", "phones", "printers", "radios", "televisions"}},
}

func categoryNames() []string {
	var names []string
	for _, c := range categories {
		names = append(names, c.name)
	}
	return names
}

// brandsOfClass is how many brands a class has.
const brandsOfClass = 10

// makers is how many makers of items there are.
const makers = 1000

var syllables = []string{"ka", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vu", "ze"}

// spelled writes a number's digits as syllables, the last digit first.
func spelled(n int) string {
	var b []byte
	for {
		b = append(b, syllables[n%10]...)
		if n /= 10; n == 0 {
			return string(b)
		}
	}
}

// hours are those of sales, each as often as it weighs.
var hours = slices.Concat(
	slices.Repeat([]int{9, 10, 11, 12, 13, 14, 15}, 3), slices.Repeat([]int{16, 17, 18, 19}, 6), slices.Repeat([]int{8, 20, 21}, 2), []int{0, 1, 2, 3, 4, 5, 6, 7, 22, 23})

func secondOfDay(r *tpcdata.Rand) int { return hours[r.Below(len(hours))]*3600 + r.Below(3600) }

// zip is one of a state's, of which few have many people.
func zip(state int, r *tpcdata.Rand) string {
	return fmt.Sprintf("%05d", 10000+state*1700+skewed(r, 1700))
}
