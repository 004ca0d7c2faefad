package datapath

import (
	"errors"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"

	"github.com/cilium/ebpf/asm"
)

func TestTheTestOfMetadata(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to create a network namespace")
	}
	if err := tryMetadata(); err != nil {
		t.Errorf("tryMetadata on this kernel: %v", err)
	}
	none := asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}
	must.Fail(t, tryMetadataOf(none), "did not reach tc")
}

func TestXDPIsNotAttachedIfMetadataIsLost(t *testing.T) {
	devices := enterSpace(t, 1)
	d := attaching(t, false, false, devices[0])
	works := d.metadata
	d.metadata = func() error { return errors.New("lost") }
	f, err := d.AttachFabric(devices[0], "")
	if err != nil || strings.Contains(f.Mode, "xdp") || !strings.Contains(f.Why, "lost") {
		t.Errorf("without metadata the device has %+v (%v), want no XDP", f, err)
	}
	d.metadata = works
	if f, err := d.AttachFabric(devices[0], ""); err != nil || !strings.HasPrefix(f.Mode, "xdp+") {
		t.Errorf("with metadata the device has %+v (%v), want XDP", f, err)
	}
}
