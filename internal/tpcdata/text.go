package tpcdata

import "slices"

// Sentences by the grammar of TPC-H, clause 4.2.2.14, of words of our own but for the four
// adjectives and four nouns that its Q13 asks for.

var (
	AskedAdjectives = []string{"special", "pending", "unusual", "express"}
	AskedNouns      = []string{"packages", "requests", "accounts", "deposits"}

	// The asked ones are repeated, so that the pairs are as frequent as in the original.
	adjectives = slices.Concat(slices.Repeat(AskedAdjectives, 4), []string{
		"amber", "brief", "bright", "broad", "calm", "cheap", "crisp", "distant", "early", "empty", "faint", "fresh",
		"gentle", "heavy", "hollow", "humble", "large", "late", "level", "loose", "mild", "narrow", "neat", "plain",
		"polite", "proper", "rare", "recent", "rough", "round", "sharp", "sober", "solid", "steady", "sturdy", "warm"})
	nouns = slices.Concat(slices.Repeat(AskedNouns, 7), []string{
		"anchors", "arches", "baskets", "beacons", "bridges", "brokers", "buckets", "candles", "carriers", "clerks",
		"copies", "crates", "drafts", "ferries", "gardens", "harbors", "hedges", "herons", "invoices", "kettles",
		"ladders", "lanterns", "ledgers", "letters", "mirrors", "notices", "offers", "orchards", "pallets", "parcels",
		"pilots", "pulleys", "receipts", "records", "samples", "scales", "sparrows", "tariffs", "tickets", "wagons"})
	verbs = []string{
		"agree", "arrive", "bargain", "climb", "depart", "differ", "drift", "expand", "gather", "grow", "hesitate", "improve",
		"linger", "listen", "matter", "move", "multiply", "proceed", "recover", "remain", "return", "rise", "settle", "shrink",
		"stand", "succeed", "travel", "turn", "vanish", "wait", "wander", "work"}
	auxiliaries  = []string{"can", "could", "dare to", "have to", "may", "might", "must", "need to", "seem to", "should", "tend to", "will", "would"}
	adverbs      = []string{"almost", "always", "boldly", "calmly", "clearly", "firmly", "freely", "hardly", "idly", "lately", "mostly", "nearly", "neatly", "never", "often", "openly", "partly", "quickly", "rarely", "really", "safely", "seldom", "simply", "slowly", "soon", "surely", "twice", "warmly", "widely"}
	prepositions = []string{"about", "above", "across", "after", "against", "along", "among", "around", "before", "behind", "below", "beneath", "beside", "between", "beyond", "despite", "during", "from", "inside", "instead of", "into", "near", "next to", "outside", "over", "through", "toward", "under", "until", "upon", "within", "without"}
	terminators  = []string{".", ".", ".", ".", ".", ".", ";", ";", ":", "?", "!", "--"}
)

// AppendText writes n letters that begin and end anywhere in random sentences.
func AppendText(b []byte, r *Rand, n int) []byte {
	start, skip := len(b), r.Below(64)
	for len(b) < start+skip+n {
		b = appendSentence(b, r)
	}
	copy(b[start:], b[start+skip:start+skip+n])
	return b[:start+n]
}

// Clauses end in a blank.

func appendSentence(b []byte, r *Rand) []byte {
	b = appendNounClause(b, r)
	switch form := r.Below(10); {
	case form < 3:
		b = appendVerbClause(b, r)
	case form < 6:
		b = appendPhrase(appendVerbClause(b, r), r)
	case form < 8:
		b = appendNounClause(appendVerbClause(b, r), r)
	case form < 9:
		b = appendVerbClause(appendPhrase(b, r), r)
	default:
		b = appendPhrase(appendVerbClause(appendPhrase(b, r), r), r)
	}
	return append(append(b[:len(b)-1], r.Word(terminators)...), ' ')
}

func appendNounClause(b []byte, r *Rand) []byte {
	switch form := r.Below(10); {
	case form < 2:
	case form < 6:
		b = appendWord(b, r.Word(adjectives))
	case form < 8:
		b = append(append(b, r.Word(adjectives)...), ", "...)
		b = appendWord(b, r.Word(adjectives))
	default:
		b = appendWord(appendWord(b, r.Word(adverbs)), r.Word(adjectives))
	}
	return appendWord(b, r.Word(nouns))
}

func appendVerbClause(b []byte, r *Rand) []byte {
	form := r.Below(4)
	if form&1 != 0 {
		b = appendWord(b, r.Word(auxiliaries))
	}
	b = appendWord(b, r.Word(verbs))
	if form&2 != 0 {
		b = appendWord(b, r.Word(adverbs))
	}
	return b
}

func appendPhrase(b []byte, r *Rand) []byte {
	return appendNounClause(append(appendWord(b, r.Word(prepositions)), "the "...), r)
}

func appendWord(b []byte, word string) []byte { return append(append(b, word...), ' ') }
