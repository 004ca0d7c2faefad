package vm

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// script is a connection whose other end has said everything already.
type script struct{ io.Reader }

func (script) Write(b []byte) (int, error)      { return len(b), nil }
func (script) Close() error                     { return nil }
func (script) LocalAddr() net.Addr              { return nil }
func (script) RemoteAddr() net.Addr             { return nil }
func (script) SetDeadline(time.Time) error      { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }

func said(text string) *qmp {
	conn := script{strings.NewReader(text)}
	return &qmp{conn, json.NewDecoder(conn)}
}

func TestEventsBetweenAnswersAreSkipped(t *testing.T) {
	threads, err := said(`{"event":"RESET"}` + "\n" + `{"return":[{"cpu-index":1,"thread-id":12},{"cpu-index":0,"thread-id":11}]}`).vcpus()
	if err != nil || len(threads) != 2 || threads[0] != 11 || threads[1] != 12 {
		t.Errorf("threads %v, %v; want 11 and 12", threads, err)
	}
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:               "read QEMU's answer to query-cpus-fast",
		`{"return":`:     "read QEMU's answer",
		`{"return":"x"}`: "understand QEMU's answer",
		`{"error":{"class":"CommandNotFound","desc":"unknown"}}`: "QEMU refuses query-cpus-fast: unknown (CommandNotFound)",
		`{"return":[{"cpu-index":1,"thread-id":12}]}`:            "QEMU names CPU 1 of 1",
		`{"return":[{"cpu-index":-1,"thread-id":12}]}`:           "QEMU names CPU -1 of 1",
		`{"return":[{"cpu-index":0,"thread-id":0}]}`:             "with thread 0",
	} {
		if threads, err := said(text).vcpus(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, threads, err, want)
		}
	}
}

func FuzzQMP(f *testing.F) {
	f.Add([]byte(`{"event":"RESET"}{"return":[{"cpu-index":0,"thread-id":11}]}`))
	f.Add([]byte(`{"error":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		conn := script{bytes.NewReader(b)}
		threads, err := (&qmp{conn, json.NewDecoder(conn)}).vcpus()
		if err != nil {
			return
		}
		for _, thread := range threads {
			if thread < 0 {
				t.Errorf("thread %d", thread)
			}
		}
	})
}
