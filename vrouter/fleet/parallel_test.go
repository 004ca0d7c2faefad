package fleet

import (
	"sync/atomic"
	"testing"
)

func TestEachNumberIsUsedOnce(t *testing.T) {
	for _, n := range []int{0, 1, fewCalls - 1, fewCalls, 2*fewCalls + 1, 10_000} {
		calls := make([]atomic.Int32, n)
		onAllCPUs(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Fatalf("%d of %d: %d calls, want 1", i, n, got)
			}
		}
	}
}
