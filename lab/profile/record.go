package profile

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// record is one record of a perf ring (struct perf_event_header and its body,
// include/uapi/linux/perf_event.h). The kind decides which fields are set.
type record struct {
	kind uint32
	misc uint16

	pid, tid   uint32
	ppid       uint32 // of a fork
	time       uint64 // of a sample: nanoseconds of CLOCK_MONOTONIC
	chain      []byte // of a sample: 8 bytes an entry, leaf first, still in the ring's memory
	count      uint64 // of records lost
	comm, file string // of comm and mmap2
	mapped     span   // of mmap2
}

// span is the range of memory to which a part of a file is mapped.
type span struct{ start, end, offset uint64 }

// sampleType selects the fields of each sample. parseRecord expects these fields.
const sampleType = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU | unix.PERF_SAMPLE_CALLCHAIN

const headerSize = 8

var native = binary.NativeEndian

// fixedLength is the minimum length of a record's body in bytes, by kind: the length
// without lists and names.
var fixedLength = map[uint32]int{
	unix.PERF_RECORD_SAMPLE: 40, unix.PERF_RECORD_COMM: 8, unix.PERF_RECORD_FORK: 24, unix.PERF_RECORD_EXIT: 24,
	unix.PERF_RECORD_MMAP2: 64, unix.PERF_RECORD_LOST: 16,
}

// parseRecord parses one whole record, including the header. For a kind that the
// sampler does not use, it sets only kind and misc.
func parseRecord(b []byte) (record, error) {
	if len(b) < headerSize {
		return record{}, fmt.Errorf("a perf record of %d bytes has no header", len(b))
	}
	r := record{kind: native.Uint32(b), misc: native.Uint16(b[4:])}
	if int(native.Uint16(b[6:])) != len(b) {
		return r, fmt.Errorf("a perf record says it has %d bytes and has %d", native.Uint16(b[6:]), len(b))
	}
	b = b[headerSize:]
	if need := fixedLength[r.kind]; len(b) < need {
		return r, fmt.Errorf("a perf record of kind %d has a body of %d bytes, want at least %d", r.kind, len(b), need)
	}
	switch r.kind {
	case unix.PERF_RECORD_SAMPLE:
		r.pid, r.tid, r.time = native.Uint32(b[8:]), native.Uint32(b[12:]), native.Uint64(b[16:])
		n := native.Uint64(b[32:])
		if n > uint64(len(b)-40)/8 {
			return r, fmt.Errorf("a perf sample has a body of %d bytes, too short for its %d call chain entries", len(b), n)
		}
		r.chain = b[40 : 40+8*n]
	case unix.PERF_RECORD_COMM:
		r.pid, r.tid, r.comm = native.Uint32(b), native.Uint32(b[4:]), cString(b[8:])
	case unix.PERF_RECORD_FORK, unix.PERF_RECORD_EXIT:
		r.pid, r.ppid, r.tid = native.Uint32(b), native.Uint32(b[4:]), native.Uint32(b[8:])
	case unix.PERF_RECORD_MMAP2:
		r.pid, r.tid, r.file = native.Uint32(b), native.Uint32(b[4:]), cString(b[64:])
		start := native.Uint64(b[8:])
		r.mapped = span{start, start + native.Uint64(b[16:]), native.Uint64(b[24:])}
	case unix.PERF_RECORD_LOST:
		r.count = native.Uint64(b[8:])
	}
	return r, nil
}

func cString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
