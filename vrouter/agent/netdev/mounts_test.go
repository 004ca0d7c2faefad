package netdev

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAMountIsReported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a filesystem")
	}
	changed, err := WatchMounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	select {
	case <-changed:
	case <-time.After(5 * time.Second):
		t.Error("a mount was not reported in 5 s")
	}
}
