package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"windtunnel/vrouter/api"
)

// pinsFinding returns the doctor's finding about the pins.
func pinsFinding(t *testing.T, r *running) api.Finding {
	t.Helper()
	all, err := r.client.Doctor(context.Background())
	must(t, err)
	for _, f := range all {
		if f.Topic == "pins" {
			return f
		}
	}
	t.Fatalf("the doctor says nothing of pins: %+v", all)
	return api.Finding{}
}

// TestPinsThatEndWithTheAgentAreReported runs an agent in a separate mount
// namespace, as `ip netns exec` does, without access to process 1. Doctor and status
// report that the pins end with the agent, and they do.
func TestPinsThatEndWithTheAgentAreReported(t *testing.T) {
	t.Parallel()
	needRoot(t)
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare of util-linux")
	}
	f := newFleet(t)
	w := newSpace(t, "w")
	c := f.config("a")
	a := start(t, c) // the state, and what the doctor says where all is well
	_, err := a.client.PutState(context.Background(), f.state(map[string]*space{"a1": w}))
	must(t, err)
	if good := pinsFinding(t, a); good.Level != levelOK || !strings.Contains(good.Text, "packets keep flowing without the agent") {
		t.Errorf("of pins that stay the doctor says %+v", good)
	}
	must(t, a.healthy())
	a.stop(t)
	must(t, Remove(c, false))

	hidden := fmt.Sprintf("mount --bind %q /proc/1 && exec %q", t.TempDir(), testBinary(t))
	cmd := launched(t, written(t, c), exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", hidden))
	answers(t, a)
	_, err = a.client.PutState(context.Background(), f.state(map[string]*space{"a1": w}))
	must(t, err)
	bad := pinsFinding(t, a)
	if bad.Level != levelProblem || !strings.Contains(bad.Text, c.pinsDir()) || !strings.Contains(bad.Text, "when the agent ends") || !strings.Contains(bad.Remedy, "netns: "+c.Netns) {
		t.Errorf("the doctor says %+v", bad)
	}
	must(t, a.complains("when the agent ends", "vrouter doctor"))
	served := func() []string {
		return programsOn(t, f.a, linkIn(t, f.a, "fab0"))
	}
	if len(served()) == 0 {
		t.Error("the fabric is not served")
	}
	killed(t, cmd)
	eventually(t, "the programs' end with the agent", func() error {
		if left := served(); len(left) > 0 {
			return fmt.Errorf("still there: %q", left)
		}
		return nil
	})
}

func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// TestLostPinsAreCountedAndRetiredOnesAreNot checks the count of missing pins. It uses
// a plain directory instead of a bpf filesystem.
func TestLostPinsAreCountedAndRetiredOnesAreNot(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"links", "g1-old", "g1-new"} {
		must(t, os.Mkdir(dir+"/"+path, 0o700))
	}
	for _, path := range []string{"g1-old/vifs", "g1-new/vifs", "g1-new/flows"} {
		must(t, os.WriteFile(dir+"/"+path, nil, 0o600))
	}
	p := pins{dir: dir}
	p.note()
	if n := p.lost(); n != 0 || len(p.have) != 4 {
		t.Fatalf("%d lost of %q", n, p.have)
	}
	must(t, os.RemoveAll(dir+"/g1-old"))
	p.noteRetired()
	if n := p.lost(); n != 0 || len(p.have) != 3 {
		t.Errorf("after the older maps retired: %d lost of %q", n, p.have)
	}
	must(t, os.Remove(dir+"/g1-new/flows"))
	p.noteRetired()
	if n := p.lost(); n != 1 {
		t.Errorf("a map's pin went: %d lost", n)
	}
	must(t, os.RemoveAll(dir))
	p.noteRetired()
	if n := p.lost(); n != 3 {
		t.Errorf("everything went: %d lost", n)
	}
}
