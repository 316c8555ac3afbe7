module pgaccel/bench/roaring

go 1.26.0

require (
	github.com/RoaringBitmap/roaring/v2 v2.14.4
	pgaccel v0.0.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.2 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
)

replace pgaccel => ../..
