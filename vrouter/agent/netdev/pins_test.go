package netdev

import (
	"os"
	"testing"

	"windtunnel/internal/must"
)

// TestLostPinsAreCountedAndRetiredOnesAreNot checks the count of missing pins. It uses
// a plain directory instead of a bpf filesystem.
func TestLostPinsAreCountedAndRetiredOnesAreNot(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"links", "g1-old", "g1-new"} {
		must.Succeed(t, os.Mkdir(dir+"/"+path, 0o700))
	}
	for _, path := range []string{"g1-old/vifs", "g1-new/vifs", "g1-new/flows"} {
		must.Succeed(t, os.WriteFile(dir+"/"+path, nil, 0o600))
	}
	p := Pins{Dir: dir}
	p.note()
	if n := p.Lost(); n != 0 || len(p.have) != 4 {
		t.Fatalf("%d lost of %q", n, p.have)
	}
	must.Succeed(t, os.RemoveAll(dir+"/g1-old"))
	p.NoteRetired()
	if n := p.Lost(); n != 0 || len(p.have) != 3 {
		t.Errorf("after the older maps retired: %d lost of %q", n, p.have)
	}
	must.Succeed(t, os.Remove(dir+"/g1-new/flows"))
	p.NoteRetired()
	must.Equal(t, 1, p.Lost())
	must.Succeed(t, os.RemoveAll(dir))
	p.NoteRetired()
	must.Equal(t, 3, p.Lost())
}
