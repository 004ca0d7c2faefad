package system

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"windtunnel/internal/stopsignal"
)

// KeepCommand is the argument with which the windtunnel program runs Keep.
const KeepCommand = "pod"

// Keep is the first process of a container, which runs as long as this process. It reaps the
// processes whose parent has ended, until a signal of stopsignal.
func Keep() {
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
