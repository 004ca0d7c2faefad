package follow

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

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// keptVersion is the version of the files. An agent reads this version and older
// ones.
const keptVersion = 2

// Kept is the state directory of an agent. node.json has the data of this node
// only. slice.json has the last known state of a remote store. offers.json has the changes of
// encapsulations that are under way. bgp.json has the paths that BGP neighbours announced.
type Kept struct {
	dir, node string
}

// KeptHeader is the beginning of each file.
type KeptHeader struct {
	Version int    `json:"version"`
	Node    string `json:"node"`
}

// KeptNode is node.json.
type KeptNode struct {
	KeptHeader
	Instance string       `json:"instance"`          // distinguishes this node from another with the same name
	IDs      *fib.IDs     `json:"ids"`               // ids of nexthops, vifs and remotes; counters refer to them
	Underlay []netip.Addr `json:"underlay"`          // the node's last underlay addresses
	Store    string       `json:"store,omitempty"`   // id of the store that the node uses; "": unknown
	Leaving  []string     `json:"leaving,omitempty"` // ports to delete when the store is reachable
}

// keptSlice is slice.json. Its state is read as a model.State, and written as a sharedState.
type keptSlice[S any] struct {
	KeptHeader
	State S `json:"state"`
}

// sharedState is a state whose ports are pointers, so that writing it needs no copies.
type sharedState struct {
	model.State
	Ports []*model.CompactPort `json:"ports"`
}

// keptOffers is offers.json.
type keptOffers struct {
	KeptHeader
	*fib.Offers
}

// keptPaths is bgp.json.
type keptPaths struct {
	KeptHeader
	Paths []bgp.Path `json:"paths"`
}

// KeptOf is the state directory of a configured agent.
func KeptOf(c config.Config) Kept { return Kept{c.StateDir, c.Node} }

func (k Kept) header() KeptHeader { return KeptHeader{keptVersion, k.node} }

func (k Kept) nodePath() string   { return filepath.Join(k.dir, "node.json") }
func (k Kept) slicePath() string  { return filepath.Join(k.dir, "slice.json") }
func (k Kept) offersPath() string { return filepath.Join(k.dir, "offers.json") }
func (k Kept) pathsPath() string  { return filepath.Join(k.dir, "bgp.json") }
func (k Kept) storePath() string  { return filepath.Join(k.dir, "store.db") }

// EmbeddedDir is the data directory of an embedded etcd.
func (k Kept) EmbeddedDir() string { return filepath.Join(k.dir, "embedded") }

// unusableFile wraps an error of a file that this agent must not overwrite.
func unusableFile(path string, why error) error {
	return fmt.Errorf("read the node's file %s: %w; packets keep flowing; start the agent version that wrote the file, or move the file to another directory", path, why)
}

// LoadNode reads node.json; a missing file gives a new instance.
func (k Kept) LoadNode() (KeptNode, error) {
	n := KeptNode{IDs: &fib.IDs{}, Instance: rand.Text()}
	_, err := k.read(k.nodePath(), &n)
	if err == nil && (n.IDs == nil || n.Instance == "") {
		err = unusableFile(k.nodePath(), errors.New("the file is damaged: ids or instance is missing"))
	}
	n.KeptHeader = k.header()
	return n, err
}

// loadSlice reads slice.json; nil if the file is missing.
func (k Kept) loadSlice() (*model.Slice, error) {
	var s keptSlice[model.State]
	found, err := k.read(k.slicePath(), &s)
	if err != nil || !found {
		return nil, err
	}
	slice := s.State.Slice(k.node)
	return &slice, nil
}

// read decodes a file of this directory after checking its version and node.
func (k Kept) read(path string, into any) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unusableFile(path, err)
	}
	var form KeptHeader
	if err := json.Unmarshal(text, &form); err != nil {
		return false, unusableFile(path, fmt.Errorf("the file is damaged: %w", translate(err)))
	}
	switch {
	case form.Version < 1:
		return false, unusableFile(path, errors.New("the file is damaged: version is missing or 0"))
	case form.Version > keptVersion:
		return false, unusableFile(path, fmt.Errorf("the file has version %d, but this agent supports only versions up to %d", form.Version, keptVersion))
	case form.Node != k.node:
		return false, unusableFile(path, fmt.Errorf("the file belongs to node %q, but this agent runs node %q", form.Node, k.node))
	}
	if err := Decode(bytes.NewReader(text), into); err != nil {
		return false, unusableFile(path, fmt.Errorf("the file is damaged: %w", err))
	}
	return true, nil
}

// saveNode replaces node.json.
func (k Kept) saveNode(n KeptNode) error { return k.save(k.nodePath(), n) }

// saveSlice replaces slice.json.
func (k Kept) saveSlice(s model.Slice) error {
	return k.save(k.slicePath(), keptSlice[sharedState]{k.header(), sharedState{s.State, s.All}})
}

// saveOffers replaces offers.json.
func (k Kept) saveOffers(o *fib.Offers) error {
	return k.save(k.offersPath(), keptOffers{k.header(), o})
}

// loadOffers reads offers.json; none if the file is missing.
func (k Kept) loadOffers() (*fib.Offers, error) {
	kept := keptOffers{Offers: &fib.Offers{}}
	_, err := k.read(k.offersPath(), &kept)
	return kept.Offers, err
}

// SavePaths replaces bgp.json. If paths is nil, it deletes the file: the node has no BGP.
func (k Kept) SavePaths(paths []bgp.Path) error {
	if paths == nil {
		if err := os.Remove(k.pathsPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete the node's BGP paths: %w", err)
		}
		return nil
	}
	return k.save(k.pathsPath(), keptPaths{k.header(), paths})
}

// LoadPaths reads bgp.json; nil if the file is missing.
func (k Kept) LoadPaths() ([]bgp.Path, error) {
	var kept keptPaths
	_, err := k.read(k.pathsPath(), &kept)
	return kept.Paths, err
}

func (k Kept) save(path string, what any) error {
	return k.write(path, func(w io.Writer) error {
		return json.MarshalWrite(w, what, jsonv1.DefaultOptionsV1())
	})
}

// saveText writes the JSON text of an object into a file, as save does.
func (k Kept) saveText(path string, text []byte) error {
	return k.write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func (k Kept) write(path string, text func(io.Writer) error) error {
	err := replace(path, text)
	if err != nil {
		return fmt.Errorf("write %s: %w; free disk space or repair the directory", path, err)
	}
	return nil
}

// partialFiles matches files of interrupted writes.
const partialFiles = ".*.json?*"

// replace writes a file atomically: a crash leaves the old or the new one.
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

// syncDirectory makes a rename durable: fsync(2) of a file does not cover its name.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// removePartialFiles deletes files of interrupted writes.
func (k Kept) removePartialFiles() {
	left, _ := filepath.Glob(filepath.Join(k.dir, partialFiles))
	for _, path := range left {
		os.Remove(path)
	}
}

// Remove deletes the files and the node's store in this directory, and then the
// directory if it is empty.
func (k Kept) Remove() error {
	k.removePartialFiles()
	for _, path := range []string{k.nodePath(), k.slicePath(), k.offersPath(), k.pathsPath(), k.storePath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete the node's files: %w", err)
		}
	}
	if err := os.RemoveAll(k.EmbeddedDir()); err != nil {
		return fmt.Errorf("delete the embedded store: %w", err)
	}
	os.Remove(k.dir) // fails if it has other files
	return nil
}
