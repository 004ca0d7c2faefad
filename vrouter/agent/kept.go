package agent

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/google/renameio/v2"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// keptVersion is the version of the files' form. An agent reads its own and
// older ones.
const keptVersion = 1

// kept is the directory in which an agent keeps over its restarts what is this
// node's alone, node.json, and, of a store that may be out of reach, slice.json,
// what it knew of it last.
type kept struct {
	dir, node string
}

// keptNode is node.json.
type keptNode struct {
	Version  int          `json:"version"`
	Node     string       `json:"node"`
	Instance string       `json:"instance"`          // tells this node from another of its name
	IDs      *fib.IDs     `json:"ids"`               // numbers of nexthops and vifs: a reader of counters expects them to stay
	Underlay []netip.Addr `json:"underlay"`          // the node's, as it was last
	Leaving  []string     `json:"leaving,omitempty"` // ports to delete once the store is back
}

// keptSlice is slice.json.
type keptSlice struct {
	Version int         `json:"version"`
	Node    string      `json:"node"`
	State   model.State `json:"state"`
}

func (k kept) nodePath() string  { return filepath.Join(k.dir, "node.json") }
func (k kept) slicePath() string { return filepath.Join(k.dir, "slice.json") }
func (k kept) storePath() string { return filepath.Join(k.dir, "store.db") }

// embeddedDir is where an etcd inside the agent keeps its data.
func (k kept) embeddedDir() string { return filepath.Join(k.dir, "embedded") }

// unreadable says what to do about a file that this agent may not overwrite.
func unreadable(path string, why error) error {
	return fmt.Errorf("what the node keeps in %s cannot be used: %w; packets flow on as they were. Start the agent that wrote the file, or move the file away", path, why)
}

// loadNode reads what is this node's alone; new where there is none yet.
func (k kept) loadNode() (keptNode, error) {
	n := keptNode{IDs: &fib.IDs{}, Instance: rand.Text()}
	_, err := k.read(k.nodePath(), &n)
	if err == nil && (n.IDs == nil || n.Instance == "") {
		err = unreadable(k.nodePath(), errors.New("it is damaged: it has no ids, or no instance"))
	}
	n.Version, n.Node = keptVersion, k.node
	return n, err
}

// loadSlice reads what was known of the store last; nil for nothing.
func (k kept) loadSlice() (*model.State, error) {
	var s keptSlice
	found, err := k.read(k.slicePath(), &s)
	if err != nil || !found {
		return nil, err
	}
	return &s.State, nil
}

// read decodes a file of this directory, once its version and node are right.
func (k kept) read(path string, into any) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unreadable(path, err)
	}
	var form struct {
		Version *int   `json:"version"`
		Node    string `json:"node"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return false, unreadable(path, fmt.Errorf("it is damaged: %w", worded(err)))
	}
	switch {
	case form.Version == nil || *form.Version < 1:
		return false, unreadable(path, errors.New("it is damaged: it has no version"))
	case *form.Version > keptVersion:
		return false, unreadable(path, fmt.Errorf("it has version %d, this agent knows up to %d", *form.Version, keptVersion))
	case form.Node != k.node:
		return false, unreadable(path, fmt.Errorf("it is node %q's, this agent is node %q's", form.Node, k.node))
	}
	if err := decodeStrictly(bytes.NewReader(text), into); err != nil {
		return false, unreadable(path, fmt.Errorf("it is damaged: %w", err))
	}
	return true, nil
}

// saveNode replaces node.json.
func (k kept) saveNode(n keptNode) error { return k.save(k.nodePath(), n) }

// saveSlice replaces slice.json.
func (k kept) saveSlice(state model.State) error {
	return k.save(k.slicePath(), keptSlice{keptVersion, k.node, state})
}

func (k kept) save(path string, what any) error {
	err := replace(path, func(w io.Writer) error {
		return json.MarshalWrite(w, what, jsonv1.DefaultOptionsV1())
	})
	if err != nil {
		return fmt.Errorf("keep %s: %w; make room or mend the directory", path, err)
	}
	return nil
}

// partly matches files whose writing did not end.
const partly = ".*.json?*"

// replace writes a file anew as a whole: a crash leaves the old or the new one.
func replace(path string, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush()); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDirectory(dir)
}

// syncDirectory makes a rename last: fsync(2) of a file does not cover its name.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// sweep removes what a crash in the middle of a save left.
func (k kept) sweep() {
	left, _ := filepath.Glob(filepath.Join(k.dir, partly))
	for _, path := range left {
		os.Remove(path)
	}
}

// remove takes the files away, with the store where it is here, and the
// directory when nothing else is in it.
func (k kept) remove() error {
	k.sweep()
	for _, path := range []string{k.nodePath(), k.slicePath(), k.storePath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what the node keeps: %w", err)
		}
	}
	if err := os.RemoveAll(k.embeddedDir()); err != nil {
		return fmt.Errorf("remove the embedded store: %w", err)
	}
	os.Remove(k.dir) // stays when it holds a stranger's file
	return nil
}
