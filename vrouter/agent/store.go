package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// storeVersion is the version of the files' form. An agent reads its own and
// older ones.
const storeVersion = 1

// store is the directory in which an agent keeps its desired state over its
// restarts: state.json, a fleet's state as it was applied, and ports.json, what
// is this node's alone. They are apart because the first may be large and the
// second changes with each port that is added.
type store struct {
	dir, node string
}

// keptState is state.json.
type keptState struct {
	Version int         `json:"version"`
	Node    string      `json:"node"`
	State   model.State `json:"state"`
}

// keptPorts is ports.json.
type keptPorts struct {
	Version int          `json:"version"`
	Node    string       `json:"node"`
	Ports   []model.Port `json:"ports"` // added on this node, beside the state
	IDs     *fib.IDs     `json:"ids"`   // numbers of nexthops and vifs: a reader of counters expects them to stay
}

func (s store) statePath() string { return filepath.Join(s.dir, "state.json") }
func (s store) portsPath() string { return filepath.Join(s.dir, "ports.json") }

// unreadable says what to do about a file that this agent may not overwrite.
func unreadable(path string, why error) error {
	return fmt.Errorf("the desired state in %s cannot be used: %w; packets flow on as they were. Start the agent that wrote the file, or move the file away and apply the state anew with `vrouter apply`", path, why)
}

// loadState reads the applied state; nil when nothing was applied yet.
func (s store) loadState() (*keptState, error) {
	var kept keptState
	found, err := s.read(s.statePath(), &kept)
	if err != nil || !found {
		return nil, err
	}
	return &kept, nil
}

// loadPorts reads what is this node's alone; empty when there is none yet.
func (s store) loadPorts() (keptPorts, error) {
	kept := keptPorts{IDs: &fib.IDs{}}
	_, err := s.read(s.portsPath(), &kept)
	if err == nil && kept.IDs == nil {
		err = unreadable(s.portsPath(), errors.New("it is damaged: it has no ids"))
	}
	return kept, err
}

// read decodes a file of this store, once its version and node are right.
func (s store) read(path string, into any) (found bool, err error) {
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
	case *form.Version > storeVersion:
		return false, unreadable(path, fmt.Errorf("it has version %d, this agent knows up to %d", *form.Version, storeVersion))
	case form.Node != s.node:
		return false, unreadable(path, fmt.Errorf("it is node %q's, this agent is node %q's", form.Node, s.node))
	}
	if err := decodeStrictly(bytes.NewReader(text), into); err != nil {
		return false, unreadable(path, fmt.Errorf("it is damaged: %w", err))
	}
	return true, nil
}

// saveState replaces state.json.
func (s store) saveState(state model.State) error {
	return s.save(s.statePath(), keptState{storeVersion, s.node, state})
}

// savePorts replaces ports.json.
func (s store) savePorts(ports []model.Port, ids *fib.IDs) error {
	return s.save(s.portsPath(), keptPorts{storeVersion, s.node, ports, ids})
}

func (s store) save(path string, kept any) error {
	err := replace(path, func(w io.Writer) error {
		return json.MarshalWrite(w, kept, jsonv1.DefaultOptionsV1())
	})
	if err != nil {
		return fmt.Errorf("keep the desired state in %s: %w; nothing was changed. Make room or mend the directory, then ask again", path, err)
	}
	return nil
}

// partly matches files whose writing did not end.
const partly = ".part-*"

// replace writes a file anew as a whole: a crash leaves the old or the new one.
func replace(path string, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, partly)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	w := bufio.NewWriter(f)
	if err = errors.Join(write(w), w.Flush()); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
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
func (s store) sweep() {
	left, _ := filepath.Glob(filepath.Join(s.dir, partly))
	for _, path := range left {
		os.Remove(path)
	}
}

// remove takes the files away, and the directory when nothing else is in it.
func (s store) remove() error {
	s.sweep()
	for _, path := range []string{s.statePath(), s.portsPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the desired state: %w", err)
		}
	}
	os.Remove(s.dir) // stays when it holds a stranger's file
	return nil
}
