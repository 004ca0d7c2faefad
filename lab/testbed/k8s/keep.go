package k8s

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"windtunnel/internal/stopsignal"
)

// KeepPod is the first process of a pod's container. It reaps the processes whose parent has
// ended, until a signal of stopsignal.
func KeepPod() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(stopsignal.List(), unix.SIGCHLD)...)
	for s := range signals {
		if s != unix.SIGCHLD {
			return
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}
