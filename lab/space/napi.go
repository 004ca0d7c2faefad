package space

import (
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// NAPIThreads lists the PIDs of the threads that poll a device's receive queues. It
// finds them by name. The kernel cuts a thread's name to 15 bytes.
func NAPIThreads(device string) ([]int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range all {
		comm, err := p.Comm()
		if err == nil && strings.HasPrefix(comm, "napi/"+device+"-") { // an error means that the process has ended
			pids = append(pids, p.PID)
		}
	}
	slices.Sort(pids)
	return pids, nil
}
