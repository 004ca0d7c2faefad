package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"

	"windtunnel/vrouter/model"
)

// kept stores the virtual network of each docker network. Docker sends the name
// of the virtual network only when it creates the docker network, and not after
// a restart.
type kept struct {
	path string
	mu   sync.Mutex
	all  map[string]dockerNetwork // by Docker's id
}

// dockerNetwork is the virtual network of a docker network, as requested.
type dockerNetwork struct {
	Network model.Network `json:"network"`
}

func openKept(path string) (*kept, error) {
	k := &kept{path: path, all: map[string]dockerNetwork{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k.all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the docker networks from %s: %w; move the file away and create the networks again", path, err)
	}
	return k, nil
}

// network finds the virtual network of a docker network.
func (k *kept) network(id string) (dockerNetwork, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.all[id]
	if !ok {
		return n, fmt.Errorf("vrouter on this host has no docker network %.12s; remove the network and create it again", id)
	}
	return n, nil
}

// byName finds the docker network of a virtual network.
func (k *kept) byName(network string) (dockerNetwork, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.all {
		if n.Network.Name == network {
			return n, true
		}
	}
	return dockerNetwork{}, false
}

// networks returns all docker networks, by the id that Docker gave them.
func (k *kept) networks() map[string]dockerNetwork {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.all)
}

func (k *kept) set(id string, n dockerNetwork) error {
	return k.change(func(all map[string]dockerNetwork) { all[id] = n })
}

func (k *kept) forget(id string) error {
	return k.change(func(all map[string]dockerNetwork) { delete(all, id) })
}

// change writes the file before it changes the map.
func (k *kept) change(f func(map[string]dockerNetwork)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := maps.Clone(k.all)
	f(next)
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	if err := renameio.WriteFile(k.path, append(text, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(k.path))); err != nil {
		return fmt.Errorf("store the docker network: %w", err)
	}
	k.all = next
	return nil
}
