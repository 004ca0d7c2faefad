// Package traffic is the built-in traffic generator: one engine of threads
// that block in system calls, under two command lines.
//
// Worker is the lab's own interface: a server and a client that agree over a
// control connection, and one JSON document of what both ends measured.
// NTttcp takes the flags of Microsoft's NTttcp and prints what it prints, so
// that a command copied from its documentation runs.
//
// How the engine counts: every stream has a thread of its own (a goroutine
// locked to its OS thread) and a blocking socket that Go's network poller does
// not know. The thread looks at a shared stage after each call; where the stage
// has moved on, it notes its own counters, its socket's TCP_INFO and the time
// by CLOCK_MONOTONIC. So the bytes of a window are exact to within one call,
// and the seconds beside them are those of the thread that moved them.
package traffic
