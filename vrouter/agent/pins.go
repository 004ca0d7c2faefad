package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/datapath"
)

// pins are what of the data path outlives the agent, on a bpf filesystem of the
// node's.
type pins struct {
	dir     string   // by which to reach it
	have    []string // pins that are there as long as nobody takes them away
	endWith string   // why they end with the agent, if they do
	unsure  string   // or why that is not known
}

// openPins mounts the node's bpf filesystem where it is not yet.
func openPins(c Config) (pins, error) {
	dir, err := datapath.MountPins(c.pinsDir())
	if err != nil {
		return pins{}, err
	}
	p := pins{dir: dir}
	p.endWith, p.unsure = endingPins(c.pinsDir(), dir)
	return p, nil
}

// note remembers the pins of maps, and the directory of links. A link's pin
// comes and goes with its device: those are looked after by Attached.
func (p *pins) note() {
	maps, _ := filepath.Glob(filepath.Join(p.dir, "g*", "*"))
	p.have = append(maps, filepath.Join(p.dir, "links"))
}

// noteRetired forgets the pins of older maps, once those are retired.
func (p *pins) noteRetired() {
	if len(p.generations()) < 2 || isGone(p.dir) {
		return
	}
	p.have = slices.DeleteFunc(p.have, func(path string) bool { return isGone(filepath.Dir(path)) })
}

// generations are the directories in which maps were pinned.
func (p *pins) generations() []string {
	var all []string
	for _, path := range p.have {
		if dir := filepath.Dir(path); dir != p.dir && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// lost counts the pins that somebody took away. With its filesystem unmounted
// all are.
func (p *pins) lost() (n int) {
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

// keepPins makes the data path anew where its pins are gone: with the links went
// the programs, and without the maps the next agent would begin with empty ones.
func (p *pass) keepPins() {
	a := p.a
	lost := a.pins.lost()
	if lost == 0 {
		return
	}
	began := time.Now()
	if err := a.renewPlane(); err != nil {
		p.fail("", fmt.Errorf("%d of the pins in %s were taken away, and new ones cannot be made: %w", lost, a.config.pinsDir(), err))
		return
	}
	p.renewed, p.renewing = true, time.Since(began)
	p.mended = append(p.mended, fmt.Sprintf("%d of the pins in %s were gone", lost, a.config.pinsDir()))
}

// renewPlane opens the data path anew. Who reads the old one's maps goes on
// reading them; they end when nobody has them any more.
func (a *agent) renewPlane() error {
	real, err := a.openPlane()
	if err != nil {
		return err
	}
	a.usePlane(real)
	return nil
}

// endingPins says why pins end with the agent; empty: they do not. Where it
// cannot be found out, unsure says why.
func endingPins(dir, reached string) (why, unsure string) {
	if reached != dir { // through process 1's mounts
		return "", ""
	}
	if os.Getpid() == 1 {
		if isMounted(dir) {
			why = fmt.Sprintf("this agent is process 1 of a container, and the pins in %s are among the container's mounts", dir)
		}
		return why, ""
	}
	ours, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return "", fmt.Sprintf("whose mounts the pins in %s are among cannot be found out: %v", dir, err)
	}
	for _, other := range lasting() {
		switch theirs, err := os.Readlink(other + "/ns/mnt"); {
		case err != nil:
			unsure = fmt.Sprintf("whose mounts the pins in %s are among cannot be found out: %v", dir, err)
		case theirs == ours:
			return "", ""
		default:
			return fmt.Sprintf("this agent has mounts of its own, and process 1's are out of reach, so the pins in %s are among its own", dir), ""
		}
	}
	return "", unsure
}

// lasting are processes whose mounts outlive the agent's, the surest first:
// process 1, then the kernel's own thread that makes the others, which has the
// mounts that the kernel began with, then who started the agent.
func lasting() []string {
	all := []string{"/proc/1"}
	if name, err := os.ReadFile("/proc/2/comm"); err == nil && strings.TrimSpace(string(name)) == "kthreadd" {
		all = append(all, "/proc/2")
	}
	return append(all, fmt.Sprintf("/proc/%d", os.Getppid()))
}

// isMounted tells whether a filesystem is mounted right there, not above it.
func isMounted(dir string) bool {
	var own, parent unix.Stat_t
	return unix.Stat(dir, &own) == nil && unix.Stat(filepath.Dir(dir), &parent) == nil && own.Dev != parent.Dev
}

// endingRemedy is what to do about it.
func endingRemedy(c Config) string {
	netns := c.Netns
	if netns == "" {
		netns = "NAME"
	}
	return strings.Join([]string{
		"run the agent among the node's own processes and mounts: name the network namespace in the configuration (netns: " + netns + ") in place of `ip netns exec`",
		"in a container share the node's process numbers, or mount a bpf filesystem of the node's at " + filepath.Dir(c.pinsDir()),
	}, "; ")
}

// warning is what status says of the pins.
func (p *pins) warning() []string {
	if p.endWith == "" {
		return nil
	}
	return []string{p.endWith + ": with the agent they end, and packets with them; vrouter doctor has the remedy"}
}
