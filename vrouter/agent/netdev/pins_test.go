package netdev

import (
	"os"
	"testing"
)

// TestLostPinsAreCountedAndRetiredOnesAreNot checks the count of missing pins. It uses
// a plain directory instead of a bpf filesystem.
func TestLostPinsAreCountedAndRetiredOnesAreNot(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"links", "g1-old", "g1-new"} {
		if err := os.Mkdir(dir+"/"+path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"g1-old/vifs", "g1-new/vifs", "g1-new/flows"} {
		if err := os.WriteFile(dir+"/"+path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := Pins{Dir: dir}
	p.note()
	if n := p.Lost(); n != 0 || len(p.have) != 4 {
		t.Fatalf("%d lost of %q", n, p.have)
	}
	if err := os.RemoveAll(dir + "/g1-old"); err != nil {
		t.Fatal(err)
	}
	p.NoteRetired()
	if n := p.Lost(); n != 0 || len(p.have) != 3 {
		t.Errorf("after the older maps retired: %d lost of %q", n, p.have)
	}
	if err := os.Remove(dir + "/g1-new/flows"); err != nil {
		t.Fatal(err)
	}
	p.NoteRetired()
	if n := p.Lost(); n != 1 {
		t.Errorf("a map's pin went: %d lost", n)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p.NoteRetired()
	if n := p.Lost(); n != 3 {
		t.Errorf("everything went: %d lost", n)
	}
}
