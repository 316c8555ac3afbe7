// Package processors divides the processors among queries, event loops and the rest.
//
// Go's scheduler has no priorities: a goroutine that returns from a wait in the system
// (an event loop from epoll_wait) waits its turn where others that compute hold all of
// Go's processors, ten milliseconds for each that is before it. So there are more of
// those than cores, and queries, which could hold all, use no more than the cores
// (olap.Slots): who wakes up has one at once, and the kernel, which has priorities,
// decides who runs.
package processors
