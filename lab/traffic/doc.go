// Package traffic is the built-in traffic generator. Its threads block in system calls. It
// has two command lines.
//
// Worker is the lab's command line: a server and a client coordinate over a control
// connection, and print one JSON document with the measurements of both ends. NTttcp has
// the flags and the output of Microsoft's NTttcp, so a command copied from its
// documentation runs.
//
// How the engine counts: every stream has a separate thread (a goroutine locked to its OS
// thread) and a blocking socket that Go's network poller does not manage. At the edges of the
// window the conductor, a thread of high priority, reads the counters of all threads and the
// time by CLOCK_MONOTONIC. So the bytes of a window are exact to within one call or 4 KiB, also if a
// thread waits for a busy CPU. After each call a thread reads the shared phase. When the phase
// has changed, the thread reads its socket's TCP_INFO.
package traffic
