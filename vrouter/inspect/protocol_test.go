package inspect

import (
	"testing"
	"time"
)

func TestProtocolsAreReadAsTheyAreWritten(t *testing.T) {
	for p := range 256 {
		got, err := ParseProtocol(ProtocolName(uint8(p)))
		if err != nil || got != uint8(p) {
			t.Errorf("protocol %d writes %q and reads %d, %v", p, ProtocolName(uint8(p)), got, err)
		}
	}
	if got, err := ParseProtocol("TCP"); err != nil || got != 6 {
		t.Errorf("TCP reads %d, %v", got, err)
	}
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0ms", 850 * time.Millisecond: "850ms", 4290 * time.Millisecond: "4.2s", 59999 * time.Millisecond: "59.9s",
		185 * time.Second: "3m05s", 2*time.Hour + 10*time.Minute + 59*time.Second: "2h10m", 76*time.Hour + time.Minute: "3d04h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
