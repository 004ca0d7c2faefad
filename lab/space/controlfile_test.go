package space

import (
	"strings"
	"testing"

	"github.com/prometheus/procfs"

	"windtunnel/internal/must"
)

func TestControlGroupsOfAProcess(t *testing.T) {
	v1 := []procfs.Cgroup{
		{HierarchyID: 9, Controllers: []string{"name=systemd"}, Path: "/"}, {HierarchyID: 3, Controllers: []string{"cpuset"}, Path: "/docker/abc"},
		{HierarchyID: 2, Controllers: []string{"cpu", "cpuacct"}, Path: "/docker/abc"}, {Path: "/"},
	}
	if group, v2, ok := cgroupPath(v1, "cpuset"); group != "/docker/abc" || v2 || !ok {
		t.Errorf("the control group is %q, of version 2: %v (%v), want /docker/abc of version 1", group, v2, ok)
	}
	if group, v2, ok := cgroupPath([]procfs.Cgroup{{Path: "/user.slice/a:b"}}, "cpuset"); group != "/user.slice/a:b" || !v2 || !ok {
		t.Errorf("the control group is %q, of version 2: %v (%v), want the user's of version 2", group, v2, ok)
	}
	if _, _, ok := cgroupPath(nil, "cpuset"); ok {
		t.Error("a process without groups has one")
	}
	want := []ControlFile{{"/a/b", "/m/a/b/f"}, {"/a", "/m/a/f"}, {"/", "/m/f"}}
	must.Equal(t, want, controlFiles("/m", "/a/b", "f"))
	must.Equal(t, []ControlFile{{"/", "/m/f"}}, controlFiles("/m", "/../..", "f"))
}

func FuzzControlFiles(f *testing.F) {
	f.Add("/a/../../b")
	f.Fuzz(func(t *testing.T, group string) {
		for _, file := range controlFiles("/m", group, "f") {
			if !strings.HasPrefix(file.Path, "/m/") {
				t.Errorf("control group %q has file %s, want a file in /m", group, file.Path)
			}
		}
	})
}
