package datapath

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// The verifier's own message about a kernel without BTF does not name BTF.
func TestARefusedLoadOnAKernelWithoutBTFNamesIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting over the kernel's BTF needs root")
	}
	must.Succeed(t, netspace.OwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("none", "/sys/kernel/btf", "tmpfs", 0, "")); err != nil {
			return err
		}
		if said := explain(errors.New("refused")).Error(); !strings.Contains(said, "refused; this kernel") || !strings.Contains(said, "lacks BTF of the kernel (Linux 5.2 with CONFIG_DEBUG_INFO_BTF)") {
			t.Errorf("the error is %q", said)
		}
		return nil
	}))
	if said := explain(errors.New("refused")).Error(); strings.Contains(said, "BTF") {
		t.Errorf("with BTF the error is %q", said)
	}
}
