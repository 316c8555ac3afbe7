// Package worker puts a socket between device.Executor and the process that has a device:
// [Serve] answers in the worker process (cmd/pgaccel-gpu), [Client] asks in pgaccel, [Start] starts
// a worker and [Supervisor] keeps one running. With the build tag cuda it also holds the
// executor itself, over NVIDIA's driver and NVRTC.
//
// pgaccel links no CUDA and survives what happens to its worker: whatever goes wrong there, a
// driver that ends the process, a kernel's crash, an update, is one *device.Fault of kind
// Lost here, and a new worker half a second later. Memory and modules are the process's: a new
// [Client] has none of the old one's.
//
// # Messages
//
// The socket is a Unix stream socket, the worker's file descriptor 3. It begins with a
// greeting of each side, whose form never changes, so that two builds that do not fit say so:
//
//	8  "pgaccelw"
//	4  length of what follows, little-endian
//	n  JSON: version, build; from the worker also devices, or the fault that it has instead
//
// The version is a hash of the form of everything said here, so it changes by itself with
// the types of package device. After the greetings both sides send frames:
//
//	+------------+-----------+-----------+-----------+------------+-------------+
//	| kind u8, 0 | body u32  | raw u64   | id u64    | body bytes | raw bytes   |
//	| 4 bytes    | length    | length    | request   | packed     | bulk data   |
//	+------------+-----------+-----------+-----------+------------+-------------+
//
// All of it is little-endian; bodies are packed varints (codec.go), so a batch of 20 commands is
// some hundreds of bytes. Raw is the data of a batch's OpWrite commands, or what its OpRead
// commands read, in order and without copies on the sending side. Where an OpWrite has a megabyte or more, the client
// copies its data to memory that it shares with the worker, and sends an OpCopyShared (transfer.go). Requests are answered as
// they end, in any order, by their id; a cancel has the id of the request that it ends. A
// share's file descriptor comes with the first byte of its frame (SCM_RIGHTS).
//
// A frame that is cut off, too long or not understood ends the connection: after it there is no
// telling where the next begins.
//
// # The executor
//
// Everything that is not a call of CUDA's is written against the interface driver, so that
// it is tested without: executor (devices, sources that are compiled once), runner
// (batch.go: a stream, its pinned staging memory in two halves; a batch with copy streams has those
// of all of them, and events of the driver's in between), gather.go (many small pieces
// of a shared file, copied by one kernel that reads them over the bus: a copy of the driver's for
// each takes longer than the bus does), modules (an LRU of loaded ones,
// whose numbers stay valid), sharedFile (chunks of a client's file, mapped and pinned in the
// background, or when they are first copied from), cache (images on disk). cuda.go is the driver over libcuda, by gorgonia.org/cu
// where it has the call and by cgo where not; its package init ends the process where the driver
// fails, and driverReason reads why. NVRTC is opened at run time (package nvrtc), and
// so is nvJitLink, for sources that launch kernels themselves. A kernel's
// stray write leaves nothing in the process to be trusted: the fault is Lost, Serve replies it and
// returns, and the process ends.
//
// A cached image is a file (package checkedfile) of "pgaccel image 1\n" and the image as the driver loads it; its name
// is the hash of all that went into it: source, options, compiler, architecture.
package worker
