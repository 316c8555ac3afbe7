// Package bulk has memory for data of megabytes that is soon done with, which is used again: making such memory, which
// the system does page by page, takes longer than what is done with it.
package bulk
