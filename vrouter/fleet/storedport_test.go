package fleet

import (
	"testing"
	"unsafe"
)

// An agent keeps up to 100,000 ports and more. With 8 bytes more, each would take 320 bytes.
func TestAStoredPortIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(storedPort{}); size > 288 {
		t.Errorf("a stored port has %d bytes, want at most 288", size)
	}
}
