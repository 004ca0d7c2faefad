package parallel

import (
	"fmt"
	"sync"
	"testing"

	"windtunnel/internal/must"
)

func TestAllElementsRunAtOnceAndTheirErrorsAreInOrder(t *testing.T) {
	var met sync.WaitGroup
	met.Add(3)
	err := Each([]string{"a", "b", "c"}, func(i int, x string) error {
		met.Done()
		met.Wait() // each call waits for the others to run
		if i == 1 {
			return nil
		}
		return fmt.Errorf("%d %s", i, x)
	})
	if err == nil || err.Error() != "0 a\n2 c" {
		t.Errorf("got %v, want the errors of the elements 0 and 2", err)
	}
	must.Succeed(t, Each([]int(nil), func(int, int) error { return fmt.Errorf("called") }))
}
