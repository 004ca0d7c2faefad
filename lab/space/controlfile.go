package space

import (
	"path"
	"path/filepath"
	"slices"

	"github.com/prometheus/procfs"
)

// ControlFile is a possible file of a control group.
type ControlFile struct {
	Group string // path of the control group in its hierarchy
	Path  string
}

// ControlFiles returns the possible files of a process's control group and of the groups above
// it, the group first. The name of the file is v1 if the controller is in a hierarchy of
// version 1, else v2. root is the root directory of the file systems. If the groups of the
// process cannot be read, it returns no files.
func ControlFiles(root string, pid int, controller, v1, v2 string) (files []ControlFile, unified bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil, false
	}
	all, _ := p.Cgroups() // after an error there is no group
	group, unified, ok := cgroupPath(all, controller)
	if !ok {
		return nil, unified
	}
	if unified {
		return controlFiles(filepath.Join(root, cgroups), group, v2), true
	}
	return controlFiles(filepath.Join(root, cgroups, controller), group, v1), false
}

// cgroupPath finds a process's control group among its groups in all hierarchies.
// If the controller is in a version 1 hierarchy, it returns the group there, else
// the group in the unified hierarchy (version 2).
func cgroupPath(all []procfs.Cgroup, controller string) (group string, v2, ok bool) {
	for _, g := range all {
		if slices.Contains(g.Controllers, controller) {
			return g.Path, false, true
		}
	}
	unified := slices.IndexFunc(all, func(g procfs.Cgroup) bool { return g.HierarchyID == 0 && len(g.Controllers) == 0 })
	if unified < 0 {
		return "", true, false
	}
	return all[unified].Path, true, true
}

// controlFiles returns the possible paths of a group's file: of the group, then of its
// ancestors. Inside a container the group's path often does not exist, because the root of
// the mount is the group.
func controlFiles(mount, group, file string) []ControlFile {
	group = path.Clean("/" + group)
	var files []ControlFile
	for {
		files = append(files, ControlFile{group, path.Join(mount, group, file)})
		if group == "/" {
			return files
		}
		group = path.Dir(group)
	}
}
