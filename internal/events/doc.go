// Package events is a table as a web shop's analytics keep it, events, at any number of
// rows, with 20 queries as business intelligence tools write them, and a loader.
//
//	column     type              values
//	id         bigint            1..rows, the primary key
//	ts         timestamptz       the year 2025 (UTC), nearly in order of id: some seconds off
//	user_id    integer           Zipf over rows / 5 users, 10,000 at least
//	country    text              Zipf over 200 codes, 3 % null
//	device     text              4, the most frequent of 55 %
//	browser    text              8, depending on the device
//	url        text              Zipf over 50,000, 30 to 90 bytes
//	campaign   integer           Zipf over 300, 60 % null
//	status     smallint          9 HTTP codes, 200 in 90 %
//	amount     numeric(12,2)     most of them small, 1 % negative, 15 % null
//	latency    double precision  log-normal milliseconds (median 33), 3 decimals
//	bytes      bigint            64 to 2 million, its logarithm uniform
//	converted  boolean           4 % true
//
// Everything is drawn from PCG generators, one a block of 8,192 rows, so that blocks can
// be made at the same time and the same number of rows always gives the same bytes. Zipf
// is the law with exponent 1: the k-th most frequent value comes 1/k as often as the
// first. users are drawn from its continuous form, rank = floor((n+1)^u) for a uniform u.
package events
