package meter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// aTree writes files below a new directory.
func aTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

const (
	uidProxy = "11111111-2222-3333-4444-555555555555"
	uidOwn   = "aaaaaaaa-2222-3333-4444-555555555555"
	uidMore  = "bbbbbbbb-2222-3333-4444-555555555555"
)

// Both versions of control groups, with the kubelet's drivers cgroupfs and systemd. In the
// first, another node's pods are on the same machine, a program's control group has a child,
// and a kube-proxy outside of pods is in the group of a pod.
func TestGroupsOfANodeAreFoundAndRead(t *testing.T) {
	under := func(s string) string { return strings.ReplaceAll(s, "-", "_") }
	v1 := map[string]string{"unified/cgroup.controllers": ""}
	for path, ns := range map[string]int{
		"": 90000, "node-1/kubepods": 50000, "node-1/kubepods/burstable/pod" + uidProxy: 3000, "node-1/kubepods/besteffort/pod" + uidOwn: 40000,
		"node-1/kubepods/besteffort/pod" + uidMore: 500, "node-2/kubepods": 20000, "node-2/kubepods/podx": 10, "node-1/flanneld": 700, "node-1/flanneld/child": 600, "node-1/mixed": 800, "node-1/proxy": 300,
	} {
		v1["cpuacct/"+path+"/cpuacct.usage"] = fmt.Sprintln(ns)
	}
	v1["cpuacct/node-1/flanneld/child/cgroup.procs"], v1["cpuacct/node-1/proxy/cgroup.procs"] = "8\n", "6\n"
	v1["cpuacct/cgroup.procs"], v1["cpuacct/node-1/flanneld/cgroup.procs"], v1["cpuacct/node-1/mixed/cgroup.procs"] = "1\n", "7\n8\n", "7\n9\n"
	v2 := map[string]string{"cgroup.controllers": "cpu", "cgroup.procs": "1\n", "kubepods.slice/cgroup.procs": ""}
	for path, us := range map[string]int{
		"": 90, "kubepods.slice": 50, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under(uidProxy) + ".slice": 3,
		"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + under(uidOwn) + ".slice": 40, "system.slice/flanneld.service": 7,
	} {
		v2[path+"/cpu.stat"] = fmt.Sprintf("usage_usec %d\nuser_usec 1\n", us)
	}
	v2["system.slice/flanneld.service/cgroup.procs"] = "7\n8\n"
	proc := aTree(t, map[string]string{"1/comm": "systemd\n", "6/comm": "kube-proxy\n", "7/comm": "flanneld\n", "8/comm": "flanneld\n", "9/comm": "bash\n"})
	args := GroupArgs{Pods: map[string][]string{"kube-proxy": {uidProxy}, "cilium": {"absent"}}, Programs: []string{"cilium", "flannel", "kube-proxy"}, Own: []string{uidOwn}}
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]int64
	}{
		"v1": {v1, map[string]int64{"kube-proxy": 3000 + 300, "flannel": 700, OwnPods: 40000, OtherPods: 50000 - 3000 - 40000}},
		"v2": {v2, map[string]int64{"kube-proxy": 3000, "flannel": 7000, OwnPods: 40000, OtherPods: 50000 - 3000 - 40000}},
	} {
		root := aTree(t, c.files)
		groups, err := FindGroups(root, proc, args)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := readGroups(groups)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: read %v (%v), want %v", name, got, err, c.want)
		}
		for _, g := range groups {
			if g.Name == "kube-proxy" {
				must.Succeed(t, os.Remove(g.Files[0]))
			}
		}
		if got, err := readGroups(groups); err != nil || len(got) != 2 || got["flannel"] != c.want["flannel"] {
			t.Errorf("%s: after the end of a pod: %v, %v; want flannel and the run's pods", name, got, err)
		}
	}
}

func TestMissingControlGroupsAreNotAnError(t *testing.T) {
	groups, err := FindGroups(t.TempDir(), t.TempDir(), GroupArgs{Own: []string{uidOwn}})
	if err != nil || len(groups) > 0 {
		t.Errorf("the groups are %v (%v), want none", groups, err)
	}
}

func TestTheWindowHasTheCPUTimeOfGroups(t *testing.T) {
	a := Reading{Node: "n", Mono: 0, Groups: map[string]int64{"kube-proxy": 1e9, "gone": 1, "steady": 5}}
	b := Reading{Node: "n", Mono: 2e9, Groups: map[string]int64{"kube-proxy": 2e9, "new": 7, "steady": 5}}
	d := must.Get(Window(a, b))(t)
	must.Equal(t, "map[kube-proxy:1 steady:0]", fmt.Sprint(d.Groups))
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "a control group of gone ended") {
		t.Errorf("warnings %q", d.Warnings)
	}
	ms := Metrics(&d, &d, Facts{})
	if got := ms["sender_group_cpu_cores/kube-proxy"]; got != 0.5 || ms["receiver_group_cpu_cores/kube-proxy"] != 0.5 {
		t.Errorf("metrics %v, want half a core on both sides", ms)
	}
	if _, ok := ms["sender_group_cpu_cores/gone"]; ok {
		t.Error("a group that ended has a figure")
	}
}
