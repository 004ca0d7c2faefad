package agent

import (
	"testing"

	"github.com/prometheus/procfs"

	"windtunnel/internal/must"
)

// The test program is several times larger than what it uses between the calls.
func TestMostPagesOfTheProgramAreUnmapped(t *testing.T) {
	resident := func() uint64 {
		self, err := procfs.Self()
		must.Succeed(t, err)
		s, err := self.NewStatus()
		must.Succeed(t, err)
		return s.RssFile
	}
	before := resident()
	must.Succeed(t, unmapProgram())
	if after := resident(); after > before/2 {
		t.Errorf("%d bytes of files are resident, %d before; want at most half", after, before)
	}
}
