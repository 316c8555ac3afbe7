// Package engine takes one query through its life: decide whether it can be
// answered from columns, say what the gate must ask the client's own Postgres
// session, check the gate's answer, execute, or say why not. It sees no bytes of
// the wire: package proxy does the talking.
//
// # The moment of an answer
//
//	gate ------> snapshot S, and a log position P read after S was taken
//	stream ----> has it passed P? then the store holds all that S sees
//	store -----> View(S): what S sees, and nothing else
//
// The wait for P is skipped where the gate shows the same S as one that was satisfied
// before on the same connection of the stream. It is bounded by Options.WaitLimit;
// past it the query is forwarded. In REPEATABLE READ the gate shows the transaction's
// own snapshot in every statement: what it needs is kept (Transaction, Store.Pin) from
// the first gate to the end of the transaction.
//
// All three are of one server: the gate names the one that the session is on by its start
// (catalog.DatabaseSQL), the store the one that its stream comes from. Where they
// differ (a restart, a fail-over, an older copy of the files put back, while the stream
// still waits for what is gone) the query is forwarded, whatever the positions are, and
// Options.CheckServer is told. A server that goes back without a start, in a snapshot of a
// running virtual machine, is not noticed before the stream's connection fails.
//
// # Speculation
//
//	proxy    gate sent ----------------------> gate's answer --Take or Execute--> rows
//	engine   Speculate --Run: newest versions--> result        the same versions? take it
//
// An execution may begin before its gate has answered (Speculation). It supposes that the
// session has the rights, settings and definitions that its last gate showed for the shape,
// and that nothing is committed in between. The gate decides all that, as for any execution;
// then colstore.Store.Same says whether its snapshot sees what was read, by the commits
// themselves. A miss costs the work done until then, at most the gate's time: speculations
// stop for a while for a shape that misses, there are no more than processors, and on the
// processor none begins while a quarter of them have executions. What is dropped shows
// nowhere but in pgaccel_speculations_total and in the device's work.
//
// An execution with constants that come with the gate (plan.ServerConst) is not begun before.
//
// # Reuse
//
// A dashboard asks the same every few seconds. The result of an execution is kept, where it is small, with
// the versions of the tables that it was computed of. Another execution of the same plan with the same values
// passes its gate as ever, for rights, settings and definitions; then, where the gate's snapshot sees
// exactly these versions (colstore.Store.Same), the result is the kept one.
// It is offered before the gate has answered, as a speculation that has ended (decision.computed).
//
// # Constants of the server's
//
// now() and other expressions over no rows are computed by the server, behind the gate and in its
// transaction (Constants). In a block, and in a batch of the extended protocol, that is the
// statement's own transaction, so that now() is what the statement would see; of a simple Query outside of a block,
// the gate's transaction began after the request and before the answer, as the statement's would have. What could differ within a
// transaction (statement_timestamp(), what is volatile) is not asked for. The server checks EXECUTE on what it calls there.
//
// # Where the gate may not run
//
// The gate calls built-in functions and reads catalogs, which anybody may by default. A
// role that has lost one of these rights has its statements forwarded, and its transaction
// goes on, whenever it was lost: the proxy runs the gate only where an error of its can be
// undone, which is inside of a savepoint in a transaction block, and elsewhere before the
// server has run anything of the transaction.
//
// # Rights on built-in functions
//
// The plan names every built-in function that Postgres may call for the statement, those
// of operators, casts and aggregates included (plan.Deps.Calls); the gate asks for EXECUTE
// on each. Only what Postgres' planner calls for itself is not among them: with a partial
// index or a check constraint it may compare constants by another operator of the same
// family, and check the right to that.
//
// # Who answers faster
//
// A shape that takes long here may be forwarded for that alone (routing.go): the server is asked for its estimate
// (estimate.go), one execution in a while is forwarded and timed, and the faster side goes on, until the other is. Trials
// are made where an execution begins (Session.Executes), never of one that may insist: of a session that has named
// pgaccel.mode. The answer does not depend on any of that.
//
// A device and the processor share a shape's executions by the same rule (device.go, timing.go). Before there
// is a device's time to compare, that has to compile a kernel and to get columns: the processor answers, and the
// device computes the same behind it (warmup.go). Kernels of a statement that is prepared or described, without
// parameters, begin to be compiled then. Where the device was first, the processor's time is estimated by other shapes (processorRate).
//
// An execution that was computed and then forwarded, for a reason that would come again, is remembered
// with its values (latefailure.go): the next one is forwarded behind its gate, and computes nothing.
//
// # pgaccel.max_staleness
//
// A session that sets it to more than 0 accepts, outside of REPEATABLE READ, the
// database as it was at most so long ago: where the stream is not there yet, the query
// is answered at once, as of the newest snapshot that some session's gate has shown and
// that the stream has passed, if that was taken no longer ago. Such an answer is a
// consistent snapshot of the past. It may lack commits of other sessions and earlier
// ones of this session, and may be older than what the session has read before from
// Postgres. Rights, names and definitions are always those of now. The value is a
// duration as Postgres writes them: 5s, 500ms, 1min, or a number of milliseconds; any
// other text counts as 0.
//
// # The schema pgaccel
//
// Its relations are rows that Postgres gets as a parameter's value (View), none but those
// that the session's role may see: of tables and columns that it may select from; members of
// pg_read_all_stats see all of them, and the texts of statements.
//
// # EXPLAIN
//
// An EXPLAIN of a SELECT goes the way of that SELECT (explain.go), and is not counted: neither among the queries, nor
// of its shape. With ANALYZE it is an execution all the same, whose time says where the next ones of the shape run.
//
// # Memory
//
// All executions of the process share Options.QueryMemory (memory.go). Each reserves what it
// takes as it grows; what is left of it when it ends is its result's, until the proxy lets
// that go (vector.Batch.Release): at the last row, with the portal, its transaction or the
// session. Where there is no room an execution goes on in temporary files (Options.Temp), or is
// forwarded, before a byte is sent.
//
// # Shadow checks
//
// The proxy has a share of the executions answered by Postgres that could have been
// answered here (Statement.Shadow), and gives the outcome of the comparison back
// (Check.Done). A shape that was wrong once is forwarded as long as the process lives.
package engine
