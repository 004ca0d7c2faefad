package datapath

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

func TestADirectoryOnABpffsOfOthersIsUsedAndLeft(t *testing.T) {
	outer := filepath.Join(t.TempDir(), "bpf")
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts a bpf filesystem")
	}
	path, err := MountPins(outer)
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := UnmountPins(outer); err != nil {
			t.Error(err)
		}
	})
	inner, err := MountPins(filepath.Join(outer, "node"))
	if err != nil || !isBPF(inner) {
		t.Fatalf("%s, %v", inner, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), filepath.Join(outer, "node")) {
		t.Errorf("a second file system was mounted over the first: %v", err)
	}
	must.Succeed(t, UnmountPins(filepath.Join(outer, "node")))
	if _, err := os.Stat(inner); !os.IsNotExist(err) || !isBPF(path) {
		t.Errorf("after UnmountPins: %v, the outer one is there: %v", err, isBPF(path))
	}
}

func TestPinsOutliveTheMountNamespaceOfTheProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a mount namespace")
	}
	if _, err := os.Readlink("/proc/1/ns/mnt"); err != nil {
		t.Skip("process 1 is out of reach: " + err.Error())
	}
	if os.Getenv("VR_DATAPATH_PINS") != "" {
		path := must.Get(MountPins(os.Getenv("VR_DATAPATH_PINS")))(t)
		d := open(t, Options{Pins: path})
		must.Get(d.Apply(scene(7, 8, 9, model.MPLSoUDP, false)))(t)
		return
	}
	dir := filepath.Join(t.TempDir(), "bpf")
	child := exec.Command("unshare", "--mount", "--propagation", "private", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "VR_DATAPATH_PINS="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		if strings.Contains(err.Error(), "executable file not found") {
			t.Skip("needs unshare of util-linux")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if err := RemovePins(dir); err != nil {
			t.Error(err)
		}
		if err := UnmountPins(dir); err != nil {
			t.Error(err)
		}
	})
	path, err := MountPins(dir)
	must.Succeed(t, err)
	d := open(t, Options{Pins: path})
	got, err := d.Dump()
	if diff := cmp.Diff(scene(7, 8, 9, model.MPLSoUDP, false), got, sameAddr, samePrefix); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
