// Package trace makes OpenTelemetry spans of statements and sends them by OTLP over HTTP, where the environment has an
// endpoint for them (OTEL_EXPORTER_OTLP_ENDPOINT). Nobody else knows the library.
//
// The span of a statement is begun when it comes and ended when its answer has. Spans below it are recorded once they are over, from
// whichever goroutine:
//
//	statement   SERVER; its parent is the traceparent of a comment in its text, as sqlcommenter writes it
//	  decide    from its arrival on: the text is parsed and planned, or found
//	  gate      the server is asked what the answer depends on
//	  wait      until the stream has passed the gate's position; absent where it has
//	  execute   the answer is computed; it may begin before the gate has ended, and be in vain
//	    device  as far as a device does that; what it took for what are attributes
//	  write     the rows are encoded, and handed to the kernel
//	  forward   the server runs the statement
//
// Without an endpoint there is no Tracer, and no Span: both are nil, and their methods do nothing then and allocate nothing.
package trace
