package docker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
)

func TestAPackageHasTheProgramAndSaysWhatItNeeds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugin")
	self := must.Get(os.Executable())(t)
	must.Succeed(t, Package(dir, self))
	text := must.Get(os.ReadFile(filepath.Join(dir, "config.json")))(t)
	var c struct {
		Entrypoint []string
		Mounts     []struct{ Destination string }
	}
	must.Succeed(t, json.Unmarshal(text, &c))
	info, err := os.Stat(filepath.Join(dir, "rootfs", c.Entrypoint[0]))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", info, err)
	}
	for _, m := range c.Mounts {
		if info, err := os.Stat(filepath.Join(dir, "rootfs", m.Destination)); err != nil || !info.IsDir() {
			t.Errorf("no place for the mount at %s: %v", m.Destination, err)
		}
	}
	must.Fail(t, Package(dir, self), "give a folder that does not exist")
}
