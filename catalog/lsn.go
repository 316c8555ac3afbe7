package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseLSN reads the text form of a position in the write-ahead log, X/Y in hexadecimal.
func ParseLSN(s string) (uint64, error) {
	hi, lo, ok := strings.Cut(s, "/")
	h, err1 := strconv.ParseUint(hi, 16, 32)
	l, err2 := strconv.ParseUint(lo, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("not a log position: %q", s)
	}
	return h<<32 | l, nil
}

// Sizes of the headers that begin pages of the write-ahead log
// (src/include/access/xlog_internal.h).
const (
	walLongHeader  = 40 // SizeOfXLogLongPHD: the first page of a segment file
	walShortHeader = 24 // SizeOfXLogShortPHD: every other page
)

// NormalizeLSN returns the position to wait for so that everything inserted before
// lsn has been seen. pg_current_wal_insert_lsn() counts the header of a page that
// no record has been written to yet, while flush and sent positions stop at the
// page's start: an idle server would never reach it. Sizes in bytes; 0 leaves lsn
// as it is.
func NormalizeLSN(lsn, segmentSize, blockSize uint64) uint64 {
	switch {
	case segmentSize != 0 && lsn%segmentSize == walLongHeader:
		return lsn - walLongHeader
	case blockSize != 0 && lsn%blockSize == walShortHeader:
		return lsn - walShortHeader
	}
	return lsn
}
