package netdev

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

func TestAMountIsReported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a filesystem")
	}
	changed := must.Get(WatchMounts(t.Context()))(t)
	dir := t.TempDir()
	must.Succeed(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	select {
	case <-changed:
	case <-time.After(5 * time.Second):
		t.Error("a mount was not reported in 5 s")
	}
}
