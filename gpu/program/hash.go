package program

import (
	"math"
	"math/bits"
	"slices"

	"pgaccel/gpu/device"
)

// HashSlots is the number of slots, of 12 bytes, of a LookupHash for n keys.
func HashSlots(n int) int { return 1 << bits.Len(uint(max(2*n, 2)-1)) }

// Hash makes room for n keys of a LookupHash: half of the slots stay free.
func (d *LookupData) Hash(n int) {
	size := HashSlots(n)
	d.HashKeys, d.HashEntries = make([]int64, size), slices.Repeat([]uint32{math.MaxUint32}, size)
}

// slot returns where a key of a LookupHash is, or would be.
func (d *LookupData) slot(key int64) uint64 {
	mask := uint64(len(d.HashKeys) - 1)
	at := HashOf(uint64(key)) & mask
	for d.HashEntries[at] != math.MaxUint32 && d.HashKeys[at] != key {
		at = (at + 1) & mask
	}
	return at
}

// Put adds a key to a LookupHash; false where it is there already.
func (d *LookupData) Put(key int64, entry uint32) bool {
	at := d.slot(key)
	if d.HashEntries[at] != math.MaxUint32 {
		return false
	}
	d.HashKeys[at], d.HashEntries[at] = key, entry
	return true
}

// slots is how many the table has, or will have.
func (d *LookupData) slots() int64 {
	if d.Keys != nil {
		return int64(HashSlots(len(d.Keys)))
	}
	return int64(len(d.HashKeys))
}

// buildHash builds the table of Keys.
func (d *LookupData) buildHash() {
	d.Hash(len(d.Keys))
	for i, k := range d.Keys {
		e := uint32(i)
		if d.Entries != nil {
			e = d.Entries[i]
		}
		d.Put(k, e)
	}
}

// HashBytes is the size of the table that a device makes, as AppendLookup would lay it out, and HashRegion the part of it,
// at an address, that is to be cleared before.
func HashBytes(d *LookupData) int64 { return keysBytes(LookupHash, d) }

// HashRegion is HashBytes'.
func HashRegion(d *LookupData, at device.Pointer) Region {
	slots := d.slots()
	return Region{At: at + device.Pointer(padded(8*slots)), Bytes: uint64(padded(4 * slots)), Value: math.MaxUint32}
}

// hashThreads is HASH_THREADS of kernels/hash.cuh.
const hashThreads = 256

// BuildHash returns the command that builds a table of keys (AppendSet) and their entries (AppendList; 0 for their numbers), which are in
// device memory. m is the module of TranscodeSource.
func BuildHash(m device.Module, d *LookupData, keys, entries, to device.Pointer, sms int) device.Command {
	slots := d.slots()
	p := new(device.Params).Ptr(keys).Ptr(entries).U64(uint64(len(d.Keys))).Ptr(to).Ptr(to + device.Pointer(padded(8*slots))).U64(uint64(slots - 1))
	return device.Command{Op: device.OpLaunch, Module: m, Function: "hash",
		Grid: [3]uint32{uint32(max(1, min((len(d.Keys)+hashThreads-1)/hashThreads, 8*sms))), 1, 1}, Block: [3]uint32{hashThreads, 1, 1}, Params: p.Bytes()}
}
