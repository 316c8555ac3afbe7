// Package clickbench is web analytics after ClickBench: its one table, hits, of 105 columns, with any number of
// rows, 43 statements of the meanings of its queries, and a loader.
//
// Names and types of columns are those of ClickBench (https://github.com/ClickHouse/ClickBench). Values, their
// distributions and the texts of the statements are our own: each row has a generator of its own, seeded by
// its number and its visit's, so that any part of the table can be made without the rest and the same number of
// rows always gives the same bytes. No result is comparable with published ones.
//
// What the distributions are after, in shares of the rows:
//
//	WatchID                  all different
//	UserID, ClientIP         0.18 and 0.1 distinct; half of the visits are of few
//	CounterID                6,500, half of the rows of 100; counter 62 has 1 per cent
//	URL, Title, Referer      0.2 distinct, of 20 to 200 letters, a third of the titles not ASCII; half of the rows of few
//	SearchPhrase             empty in 87 per cent; half of the others are different
//	RegionID                 9,000, half of the rows of 100
//	AdvEngineID              0 in 99.4 per cent
//	MobilePhoneModel         empty in 95 per cent; 160 others
//	EventTime                July 2013; rows come in its order
//
// Statements that the benchmark cuts at LIMIT among rows that tie end in keys that decide, so that there is one
// answer; Variants has two with the order left open.
package clickbench
