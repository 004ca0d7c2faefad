package k8s

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"windtunnel/internal/pause"
	"windtunnel/lab/agent"
)

const (
	// leaseTime is the time after its last renewal until a run counts as ended.
	leaseTime = 30 * time.Second
	renewTime = 8 * time.Second
)

// holder is the engine of a run, as its lease names it: HOST/BOOT/PID/START.
type holder struct {
	host  string
	boot  string // boot ID of its kernel
	pid   int
	start uint64 // of the process, in ticks since boot
}

// self returns this process.
func self() holder {
	h := holder{boot: agent.Boot(), pid: os.Getpid()}
	h.host, _ = os.Hostname()
	h.start = startOf(h.pid)
	return h
}

func (h holder) String() string { return fmt.Sprintf("%s/%s/%d/%d", h.host, h.boot, h.pid, h.start) }

// parseHolder reads the holder of a lease. Its fields are zero if the text has another form.
func parseHolder(text string) (h holder) {
	words := strings.Split(text, "/")
	if len(words) != 4 {
		return h
	}
	pid, err1 := strconv.Atoi(words[2])
	start, err2 := strconv.ParseUint(words[3], 10, 64)
	if err1 != nil || err2 != nil {
		return h
	}
	return holder{words[0], words[1], pid, start}
}

// startOf returns the start time of a process in ticks since boot; 0 if there is none.
func startOf(pid int) uint64 {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := p.Stat() // after an error the time is 0
	return stat.Starttime
}

// hasEnded reports whether the holder ran on this machine and has ended. In a container
// with other processes the holder is not found, although it runs; so only the host with the
// same name counts.
func (h holder) hasEnded() bool {
	host, _ := os.Hostname()
	return h.pid > 0 && h.start > 0 && h.boot != "" && h.boot == agent.Boot() && h.host == host && startOf(h.pid) != h.start
}

// keepLease renews the lease until ctx ends. A failed renewal is repeated.
func (c *cluster) keepLease(ctx context.Context, l lease) {
	path := leasesPath(l.Metadata.Namespace) + "/" + leaseName
	for {
		if pause.For(ctx, renewTime) != nil {
			return
		}
		l.Spec.RenewTime = &microTime{time.Now()}
		var renewed lease
		err := c.ask(ctx, http.MethodPut, path, l, &renewed)
		if is(err, http.StatusConflict) { // the answer to the last update was lost
			renewed, err = get[lease](ctx, c, path)
		}
		if err == nil {
			l = renewed
		}
	}
}
