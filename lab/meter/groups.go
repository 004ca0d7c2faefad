package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is a set of control groups whose CPU time is one figure, such as those of the pods
// of a CNI plugin's agent.
type Group struct {
	Name  string
	Files []string // cpuacct.usage (cgroup v1) or cpu.stat (v2) of each control group
	Less  []string // of control groups inside them, whose CPU time is not part of the figure
}

// GroupArgs describe the groups of a Kubernetes node.
type GroupArgs struct {
	Pods map[string][]string // UIDs of pods, by the name of their group
	// Programs are words in the names of programs that are no pods, such as a kube-proxy
	// that systemd starts. A group has the name of the word.
	Programs []string
	Own      []string // UIDs of the experiment's pods
}

// OwnPods is the name of the group of the experiment's pods, and OtherPods that of all pods
// that are in no other group.
const (
	OwnPods   = "the run's pods"
	OtherPods = "other pods"
)

// FindGroups finds groups of a node below root, the directory of the node's control groups.
// proc is a proc file system with the node's processes. A group that the node does not have
// is left out.
func FindGroups(root, proc string, args GroupArgs) ([]Group, error) {
	s := groupSearch{GroupArgs: args, proc: proc, root: filepath.Join(root, "cpuacct"), file: "cpuacct.usage", found: map[string]*Group{}}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		s.root, s.file = root, "cpu.stat"
	}
	err := filepath.WalkDir(s.root+"/.", s.visit) // cpuacct can be a link
	if err != nil {
		return nil, fmt.Errorf("list the control groups of %s: %w", s.root, err)
	}
	if s.kubepods != "" {
		other := &Group{Name: OtherPods, Files: []string{filepath.Join(s.kubepods, s.file)}}
		for _, name := range slices.Sorted(maps.Keys(s.found)) {
			for _, file := range s.found[name].Files {
				if strings.HasPrefix(file, s.kubepods+"/") {
					other.Less = append(other.Less, file)
				}
			}
		}
		s.found[OtherPods] = other
	}
	var all []Group
	for _, name := range slices.Sorted(maps.Keys(s.found)) {
		all = append(all, *s.found[name])
	}
	return all, nil
}

// groupSearch looks for the control groups of pods and programs.
type groupSearch struct {
	GroupArgs
	root, proc, file string
	found            map[string]*Group
	kubepods         string // directory of all pods of the node
}

func (s *groupSearch) visit(path string, d fs.DirEntry, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist): // it ended meanwhile
		return nil
	case err != nil:
		return err
	case !d.IsDir():
		return nil
	}
	base := d.Name()
	if slices.ContainsFunc(s.Own, func(uid string) bool { return isPod(base, uid) }) {
		s.add(OwnPods, path)
		s.kubepods = podsOf(path)
		return fs.SkipDir
	}
	for name, uids := range s.Pods {
		if slices.ContainsFunc(uids, func(uid string) bool { return isPod(base, uid) }) {
			s.add(name, path)
			return fs.SkipDir
		}
	}
	if podsOf(path) == "" {
		return s.addPrograms(path)
	}
	return nil
}

// add adds a control group to a group.
func (s *groupSearch) add(name, path string) {
	if s.found[name] == nil {
		s.found[name] = &Group{Name: name}
	}
	s.found[name].Files = append(s.found[name].Files, filepath.Join(path, s.file))
}

// addPrograms adds a control group if all of its processes run one of the programs. In a
// group with other programs too, the kernel does not separate their CPU time. The CPU time of
// a control group contains that of its children.
func (s *groupSearch) addPrograms(path string) error {
	text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return nil // it ended meanwhile, or it is of another kind (threaded)
	}
	word := ""
	for i, pid := range strings.Fields(string(text)) {
		comm, err := os.ReadFile(filepath.Join(s.proc, pid, "comm"))
		if err != nil {
			return nil
		}
		at := slices.IndexFunc(s.Programs, func(w string) bool { return strings.Contains(string(comm), w) })
		if at < 0 || i > 0 && s.Programs[at] != word {
			return nil
		}
		word = s.Programs[at]
	}
	if word != "" {
		s.add(word, path)
		return fs.SkipDir
	}
	return nil
}

// isPod reports whether a directory is the control group of a pod: pod<uid> with the driver
// cgroupfs of the kubelet, …-pod<uid>.slice with the driver systemd, which replaces
// the hyphens of the UID.
func isPod(base, uid string) bool {
	return base == "pod"+uid || strings.HasSuffix(base, "-pod"+strings.ReplaceAll(uid, "-", "_")+".slice")
}

// podsOf returns the part of a path up to the control group of all pods; "" if the path is not
// below it.
func podsOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if p == "kubepods" || strings.HasSuffix(p, "kubepods.slice") {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

// readGroups returns the CPU time of each group in nanoseconds. A group of which a control
// group is gone is left out.
func readGroups(groups []Group) (map[string]int64, error) {
	all := make(map[string]int64, len(groups))
	for _, g := range groups {
		sum := int64(0)
		complete := true
		for i, path := range slices.Concat(g.Files, g.Less) {
			used, err := groupTime(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
				complete = false
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read the CPU time of control group %s: %w", g.Name, err)
			}
			if i >= len(g.Files) {
				used = -used
			}
			sum += used
		}
		if complete {
			all[g.Name] = sum
		}
	}
	return all, nil
}

// groupTime reads the CPU time of a control group, ns.
func groupTime(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if filepath.Base(path) != "cpu.stat" {
		return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "usage_usec" {
			us, err := strconv.ParseInt(value, 10, 64)
			return us * 1000, err
		}
	}
	return 0, fmt.Errorf("%s has no usage_usec", path)
}

// groups sets the CPU time of each group in the window, in seconds. The sum of a group can
// fall by a little, because its files are read one after the other.
func (d *Delta) groups(a, b map[string]int64) {
	for name, after := range b {
		before, ok := a[name]
		if !ok {
			continue
		}
		if d.Groups == nil {
			d.Groups = map[string]float64{}
		}
		d.Groups[name] = float64(max(after-before, 0)) / 1e9
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			d.Warnings = append(d.Warnings, fmt.Sprintf("node %s: a control group of %s ended during the window: its CPU time is not known", d.Node, name))
		}
	}
}

// NewOthers opens a meter over the online CPUs of this machine that are not in
// taken: those without a part in the experiment. It returns nil if there are
// none.
func NewOthers(taken []int) (*Meter, error) {
	text, err := os.ReadFile(statFile)
	if err != nil {
		return nil, fmt.Errorf("list this machine's CPUs: %w", err)
	}
	cpus, err := otherCPUs(text, taken)
	if err != nil {
		return nil, fmt.Errorf("list this machine's CPUs: %w", err)
	}
	if len(cpus) == 0 {
		return nil, nil
	}
	return New(Config{Node: "other CPUs", CPUs: cpus})
}

func otherCPUs(stat []byte, taken []int) ([]int, error) {
	var cpus []int
	err := eachCPU(stat, func(cpu int, _ CPUTimes) {
		if !slices.Contains(taken, cpu) {
			cpus = append(cpus, cpu)
		}
	})
	return cpus, err
}

// SoftirqShares returns the part of the window, 0..1, that each CPU spent in
// softirqs, ksoftirqd included.
func (d *Delta) SoftirqShares() map[int]float64 {
	shares := make(map[int]float64, len(d.CPUs))
	for cpu, u := range d.CPUs {
		shares[cpu] = u.Softirq / d.Seconds
	}
	return shares
}
