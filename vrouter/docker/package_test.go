package docker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPackageHasTheProgramAndSaysWhatItNeeds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugin")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := Package(dir, self); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c managedConfig
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "rootfs", c.Entrypoint[0]))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", info, err)
	}
	for _, m := range c.Mounts {
		if info, err := os.Stat(filepath.Join(dir, "rootfs", m.Destination)); err != nil || !info.IsDir() {
			t.Errorf("no place for the mount at %s: %v", m.Destination, err)
		}
	}
	if err := Package(dir, self); err == nil || !strings.Contains(err.Error(), "give a folder that does not exist") {
		t.Errorf("a folder that exists: %v", err)
	}
}
