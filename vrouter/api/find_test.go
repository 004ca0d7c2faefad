package api

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func listen(t *testing.T, path string) {
	t.Helper()
	l := must.Get(net.Listen("unix", path))(t)
	t.Cleanup(func() { l.Close() })
}

func TestTheOnlyAgentIsFound(t *testing.T) {
	dir := t.TempDir()
	listen(t, filepath.Join(dir, "a.sock"))
	os.WriteFile(filepath.Join(dir, "b.sock"), nil, 0o600) // no socket
	os.Mkdir(filepath.Join(dir, "a"), 0o700)
	if got, err := Find(dir, ""); err != nil || got != filepath.Join(dir, "a.sock") {
		t.Errorf("Find returns %q (%v), want the socket of node a", got, err)
	}
}

func TestOfSeveralAgentsOneMustBeNamed(t *testing.T) {
	dir := t.TempDir()
	listen(t, filepath.Join(dir, "b.sock"))
	listen(t, filepath.Join(dir, "a.sock"))
	if _, err := Find(dir, ""); err == nil || err.Error() != "agents of 2 nodes run on this host; select one with --node: a, b" {
		t.Errorf("error %v, want %s", err, "agents of 2 nodes run on this host; select one with --node: a, b")
	}
	if got, err := Find(dir, "b"); err != nil || got != filepath.Join(dir, "b.sock") {
		t.Errorf("Find returns %q (%v), want the socket of node b", got, err)
	}
	if _, err := Find(dir, "c"); err == nil || err.Error() != `no agent of a node "c" runs on this host; the nodes are: a, b` {
		t.Errorf("error %v, want %s", err, `no agent of a node "c" runs on this host; the nodes are: a, b`)
	}
	_, err := Find(dir, "../a")
	must.Fail(t, err, "has no slash")
}

// The socket of a killed agent does not hide a running agent.
func TestTheSocketOfAKilledAgentIsIgnored(t *testing.T) {
	dir := t.TempDir()
	listen(t, filepath.Join(dir, "b.sock"))
	abandonSocket(t, filepath.Join(dir, "a.sock"))
	if got, err := Find(dir, ""); err != nil || got != filepath.Join(dir, "b.sock") {
		t.Errorf("Find returns %q (%v), want the socket of node b, whose agent runs", got, err)
	}
}

func TestADirectoryWithoutASocketHasNoAgent(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		for _, node := range []string{"", "a"} {
			if _, err := Find(d, node); err == nil || !strings.HasPrefix(err.Error(), "no agent runs on this host (no socket in "+d+")") {
				t.Errorf("error %v, want one that begins with %q", err, "no agent runs on this host (no socket in "+d+")")
			}
		}
	}
}
