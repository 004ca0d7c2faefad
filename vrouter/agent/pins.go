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

// pins are the pinned maps and links of the data path, on the node's bpf
// filesystem. They outlive the agent.
type pins struct {
	dir     string   // path of the filesystem
	have    []string // existing pins
	endWith string   // reason why the pins vanish when the agent ends; "": they remain
	unsure  string   // reason why endWith is unknown; "": it is known
}

// openPins mounts the node's bpf filesystem if needed.
func openPins(c Config) (pins, error) {
	dir, err := datapath.MountPins(c.pinsDir())
	if err != nil {
		return pins{}, err
	}
	p := pins{dir: dir}
	p.endWith, p.unsure = endingPins(c.pinsDir(), dir)
	return p, nil
}

// note records the pins of maps, and the directory of links. It does not record pins
// of links, which appear and disappear with their devices; Attached checks those.
func (p *pins) note() {
	maps, _ := filepath.Glob(filepath.Join(p.dir, "g*", "*"))
	p.have = append(maps, filepath.Join(p.dir, "links"))
}

// noteRetired removes the pins of maps that are no longer used from the record.
func (p *pins) noteRetired() {
	if len(p.generations()) < 2 || isGone(p.dir) {
		return
	}
	p.have = slices.DeleteFunc(p.have, func(path string) bool { return isGone(filepath.Dir(path)) })
}

// generations returns the directories of pinned maps.
func (p *pins) generations() []string {
	var all []string
	for _, path := range p.have {
		if dir := filepath.Dir(path); dir != p.dir && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// lost returns the number of missing pins. If the filesystem was unmounted, all pins
// are missing.
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

// keepPins recreates the data path if pins are missing. A link without a pin is
// detached when the agent ends. Without pinned maps, the next agent starts with
// empty maps.
func (p *pass) keepPins() {
	a := p.a
	lost := a.pins.lost()
	if lost == 0 {
		return
	}
	began := time.Now()
	if err := a.renewPlane(); err != nil {
		p.fail("", fmt.Errorf("recreate the %d missing pins in %s: %w", lost, a.config.pinsDir(), err))
		return
	}
	p.renewed, p.renewing = true, time.Since(began)
	p.mended = append(p.mended, fmt.Sprintf("%d of the pins in %s were gone", lost, a.config.pinsDir()))
}

// renewPlane opens a new data path. Goroutines that read the old maps can finish: the
// kernel frees a map when the last reader closes it.
func (a *agent) renewPlane() error {
	real, err := a.openPlane()
	if err != nil {
		return err
	}
	a.usePlane(real)
	return nil
}

// endingPins returns the reason why the pins vanish when the agent ends; "": they
// remain. unsure is the reason why this is unknown.
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

// isMounted reports whether dir is a mount point.
func isMounted(dir string) bool {
	var own, parent unix.Stat_t
	return unix.Stat(dir, &own) == nil && unix.Stat(filepath.Dir(dir), &parent) == nil && own.Dev != parent.Dev
}

// endingRemedy returns the remedy for pins that vanish when the agent ends.
func endingRemedy(c Config) string {
	netns := c.Netns
	if netns == "" {
		netns = "NAME"
	}
	return strings.Join([]string{
		"run the agent in the host's mount namespace: set the network namespace in the configuration (netns: " + netns + ") instead of using `ip netns exec`",
		"in a container share the host's pid namespace, or mount a bpf filesystem of the host at " + filepath.Dir(c.pinsDir()),
	}, "; ")
}

// warning returns the warning about the pins for `vrouter status`.
func (p *pins) warning() []string {
	if p.endWith == "" {
		return nil
	}
	return []string{p.endWith + ": when the agent ends, the pins and all forwarding end too; see `vrouter doctor` for the remedy"}
}
