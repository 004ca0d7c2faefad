package profile

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// record is one record of a perf ring (struct perf_event_header and what
// follows it, include/uapi/linux/perf_event.h). Which of the fields are filled
// depends on the kind.
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

// span is where a part of a file lies in memory.
type span struct{ start, end, offset uint64 }

// sampleType are the fields of each sample; parseSample follows its order.
const sampleType = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU | unix.PERF_SAMPLE_CALLCHAIN

const headerSize = 8

var native = binary.NativeEndian

// parseRecord reads one whole record, header included. Kinds that the sampler
// has no use for come back with their kind alone.
func parseRecord(b []byte) (record, error) {
	if len(b) < headerSize {
		return record{}, fmt.Errorf("a perf record of %d bytes has no header", len(b))
	}
	r := record{kind: native.Uint32(b), misc: native.Uint16(b[4:])}
	if int(native.Uint16(b[6:])) != len(b) {
		return r, fmt.Errorf("a perf record says it has %d bytes and has %d", native.Uint16(b[6:]), len(b))
	}
	body := b[headerSize:]
	parse, need := r.parser()
	if len(body) < need {
		return r, fmt.Errorf("a perf record of kind %d has %d bytes and needs %d", r.kind, len(body), need)
	}
	return r, parse(body)
}

// parser returns how to read this kind of record and its fixed length.
func (r *record) parser() (parse func([]byte) error, need int) {
	switch r.kind {
	case unix.PERF_RECORD_SAMPLE:
		return r.parseSample, 40
	case unix.PERF_RECORD_COMM:
		return r.parseComm, 8
	case unix.PERF_RECORD_FORK, unix.PERF_RECORD_EXIT:
		return r.parseFork, 24
	case unix.PERF_RECORD_MMAP2:
		return r.parseMmap2, 64
	case unix.PERF_RECORD_LOST:
		return func(b []byte) error { r.count = native.Uint64(b[8:]); return nil }, 16
	}
	return func([]byte) error { return nil }, 0
}

func (r *record) parseSample(b []byte) error {
	r.pid, r.tid = native.Uint32(b[8:]), native.Uint32(b[12:])
	r.time = native.Uint64(b[16:])
	n := native.Uint64(b[32:])
	if n > uint64(len(b)-40)/8 {
		return fmt.Errorf("a perf sample of %d bytes says it has %d call chain entries", len(b), n)
	}
	r.chain = b[40 : 40+8*n]
	return nil
}

func (r *record) parseComm(b []byte) error {
	r.pid, r.tid, r.comm = native.Uint32(b), native.Uint32(b[4:]), cString(b[8:])
	return nil
}

func (r *record) parseFork(b []byte) error {
	r.pid, r.ppid, r.tid = native.Uint32(b), native.Uint32(b[4:]), native.Uint32(b[8:])
	return nil
}

func (r *record) parseMmap2(b []byte) error {
	r.pid, r.tid = native.Uint32(b), native.Uint32(b[4:])
	start, length := native.Uint64(b[8:]), native.Uint64(b[16:])
	r.mapped = span{start, start + length, native.Uint64(b[24:])}
	r.file = cString(b[64:])
	return nil
}

func cString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
