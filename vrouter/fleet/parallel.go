package fleet

import (
	"runtime"
	"sync"
)

// fewCalls are too few calls for a goroutine.
const fewCalls = 256

// onAllCPUs calls f for each number below n. The calls run at the same time on all CPUs.
func onAllCPUs(n int, f func(i int)) {
	parts := min(runtime.GOMAXPROCS(0), n/fewCalls+1)
	var wait sync.WaitGroup
	for part := range parts {
		wait.Go(func() {
			for i := n * part / parts; i < n*(part+1)/parts; i++ {
				f(i)
			}
		})
	}
	wait.Wait()
}
