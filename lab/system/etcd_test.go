package system

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// nodeOf makes a node in a namespace of its own that is gone after the test;
// its underlay address is on the loopback.
func nodeOf(t *testing.T, name string) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	s := must.Get(space.Create(fmt.Sprintf("wt-%s%d", name, os.Getpid())))(t)
	n := &Node{Name: s.Name, Space: s, Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.1")}, MTU: 1500}
	t.Cleanup(func() {
		if err := errors.Join(n.stopDaemons(), s.Close(), space.Delete(s.Name)); err != nil {
			t.Error(err)
		}
	})
	must.Succeed(t, s.Address("lo", netip.PrefixFrom(n.Underlay[0], 32)))
	return n
}

func TestAValuePutIntoEtcdIsReadFromIt(t *testing.T) {
	if etcdProgram.Path() == "" {
		t.Skip("etcd is not installed; get it with: " + etcdProgram.Remedy())
	}
	n := nodeOf(t, "etcd")
	must.Succeed(t, n.Space.Do(func() error { return startEtcd(n) }))
	store := etcdOf(n)
	if _, err := store.get("/a"); !errors.Is(err, errNoValue) {
		t.Errorf("before it is put: %v", err)
	}
	const value = `{"of any kind": "ä\n"}`
	must.Succeed(t, store.put("/a", value))
	if got, err := store.await("/a"); err != nil || got != value {
		t.Errorf("read %q (%v), want %q", got, err, value)
	}
	must.Fail(t, store.put("", value), "key is not provided")
	must.Succeed(t, n.stopDaemons())
	if _, err := store.get("/a"); err == nil {
		t.Error("etcd answers after it was stopped")
	}
	if _, err := os.Stat(space.Home(n.Name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
}

func TestTheErrorOfAnEtcdThatEndsHasItsOutput(t *testing.T) {
	n := nodeOf(t, "etcdends")
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "etcd"), []byte("#!/bin/sh\necho cannot allocate the log >&2\nexit 3\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	err := n.Space.Do(func() error { return startEtcd(n) })
	must.Fail(t, err, "etcd ended at once (exit status 3)", "cannot allocate the log")
}

func TestOnlyTheTextTrueIsEtcdsHealth(t *testing.T) {
	for answer, say := range map[string]string{
		`{"health":"true"}`:                       "",
		`{"health":"true","reason":""}`:           "",
		`{"health":"false","reason":"NO LEADER"}`: "NO LEADER",
		`{}`:                 `""`,
		`404 page not found`: "parse etcd's health",
		`{"health":true}`:    "parse etcd's health",
		`{"health":"false","alarms":["NOSPACE",1]}`: `"false"`,
	} {
		err := parseEtcdHealth([]byte(answer))
		if (err == nil) != (say == "") || err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", answer, err, say)
		}
	}
}

// Answers as etcd 3.4's gateway gives them.
func TestAnEtcdAnswerIsAValueOrTheReason(t *testing.T) {
	const header = `"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"2","raft_term":"2"}`
	got, err := parseEtcdRange([]byte(`{` + header + `,"kvs":[{"key":"L2E=","create_revision":"2","mod_revision":"2","version":"1","value":"aGVsbG8="}],"count":"1"}`))
	if err != nil || got != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := parseEtcdRange([]byte(`{` + header + `}`)); !errors.Is(err, errNoValue) {
		t.Errorf("no such key: %v", err)
	}
	for _, bad := range []string{"", "null and void", `{"kvs":[{"value":"no base64!"}]}`, `{"kvs":{}}`, `[]`} {
		if v, err := parseEtcdRange([]byte(bad)); err == nil || errors.Is(err, errNoValue) {
			t.Errorf("%q was read as %q (%v)", bad, v, err)
		}
	}
}

func FuzzEtcdAnswers(f *testing.F) {
	f.Add([]byte(`{"kvs":[{"key":"L2E=","value":"aGVsbG8="}],"count":"1"}`))
	f.Add([]byte(`{"health":"true"}`))
	f.Add([]byte(`{"kvs":[{}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if v, err := parseEtcdRange(answer); err != nil && v != "" {
			t.Errorf("a value %q beside the error %v", v, err)
		}
		if parseEtcdHealth(answer) == nil && !strings.Contains(string(answer), "true") {
			t.Errorf("%q is taken for healthy", answer)
		}
	})
}
