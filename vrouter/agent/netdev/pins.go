package netdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
)

// Pins are the pinned maps and links of the data path, on the node's bpf
// filesystem. They outlive the agent.
type Pins struct {
	Dir     string   // path of the filesystem
	have    []string // existing pins
	EndWith string   // reason why the pins vanish when the agent ends; "": they remain
	Unsure  string   // reason why EndWith is unknown; "": it is known
}

// openPins mounts the node's bpf filesystem if needed.
func openPins(c config.Config) (Pins, error) {
	dir, err := datapath.MountPins(c.PinsDir())
	if err != nil {
		return Pins{}, err
	}
	p := Pins{Dir: dir}
	p.EndWith, p.Unsure = endingPins(c.PinsDir(), dir)
	return p, nil
}

// note records the pins of maps, and the directory of links. It does not record pins
// of links, which appear and disappear with their devices; Attached checks those.
func (p *Pins) note() {
	maps, _ := filepath.Glob(filepath.Join(p.Dir, "g*", "*"))
	p.have = append(maps, filepath.Join(p.Dir, "links"))
}

// NoteRetired removes the pins of maps that are no longer used from the record.
func (p *Pins) NoteRetired() {
	if len(p.generations()) < 2 || isGone(p.Dir) {
		return
	}
	p.have = slices.DeleteFunc(p.have, func(path string) bool { return isGone(filepath.Dir(path)) })
}

// generations returns the directories of pinned maps.
func (p *Pins) generations() []string {
	var all []string
	for _, path := range p.have {
		if dir := filepath.Dir(path); dir != p.Dir && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// Lost returns the number of missing pins. If the filesystem was unmounted, all pins
// are missing.
func (p *Pins) Lost() (n int) {
	for _, path := range p.have {
		if isGone(path) {
			n++
		}
	}
	return n
}

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// endingPins returns the reason why the pins vanish when the agent ends; "": they
// remain. unsure is the reason why this is unknown.
func endingPins(dir, reached string) (why, unsure string) {
	if reached != dir { // through process 1's mounts
		return "", ""
	}
	if os.Getpid() == 1 {
		if datapath.IsMounted(dir) {
			why = fmt.Sprintf("this agent is process 1 of a container, and the pins in %s are among the container's mounts", dir)
		}
		return why, ""
	}
	ours, err := datapath.OwnMounts()
	if err != nil {
		return "", fmt.Sprintf("cannot find the mount namespace of the pins in %s: %v", dir, err)
	}
	for _, other := range longLivedProcesses() {
		switch theirs, err := os.Readlink(other + "/ns/mnt"); {
		case err != nil:
			unsure = fmt.Sprintf("cannot find the mount namespace of the pins in %s: %v", dir, err)
		case theirs == ours:
			return "", ""
		default:
			return fmt.Sprintf("the agent runs in a separate mount namespace and cannot reach that of process 1, so the pins in %s are in the agent's namespace", dir), ""
		}
	}
	return "", unsure
}

// longLivedProcesses returns processes whose mount namespaces probably outlive the
// agent's. The most probable is first: process 1, kthreadd (which has the kernel's
// first mounts), and the agent's parent.
func longLivedProcesses() []string {
	all := []string{"/proc/1"}
	if name, err := os.ReadFile("/proc/2/comm"); err == nil && strings.TrimSpace(string(name)) == "kthreadd" {
		all = append(all, "/proc/2")
	}
	return append(all, fmt.Sprintf("/proc/%d", os.Getppid()))
}

// EndingRemedy returns the remedy for pins that vanish when the agent ends.
func EndingRemedy(c config.Config) string {
	netns := c.Netns
	if netns == "" {
		netns = "NAME"
	}
	return strings.Join([]string{
		"run the agent in the host's mount namespace: set the network namespace in the configuration (netns: " + netns + ") instead of using `ip netns exec`",
		"in a container share the host's pid namespace, or mount a bpf filesystem of the host at " + filepath.Dir(c.PinsDir()),
	}, "; ")
}

// Warning returns the warning about the pins for `vrouter status`.
func (p *Pins) Warning() []fib.Problem {
	if p.EndWith == "" {
		return nil
	}
	return []fib.Problem{{Kind: "node", Name: "pins", Text: p.EndWith + ": when the agent ends, the pins and all forwarding end too; see `vrouter doctor` for the remedy"}}
}
