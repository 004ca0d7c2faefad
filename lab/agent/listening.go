package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"windtunnel/lab/space"
)

// Listening waits until a port listens in an endpoint's namespace.
func (s *Service) Listening(args ListenArgs, ok *bool) error {
	at, err := s.locate(args.Endpoint)
	if err != nil {
		return err
	}
	if g := at.guest; g != nil {
		args.Endpoint = ""
		*ok, err = ask[bool](context.Background(), g.client, "Listening", args)
		return err
	}
	for deadline := time.Now().Add(args.Wait); ; time.Sleep(5 * time.Millisecond) {
		if *ok, err = listens(at.space, args.Port, args.UDP); err != nil || *ok {
			return err
		}
		if time.Now().After(deadline) {
			return nil
		}
	}
}

func listens(where *space.Space, port uint16, udp bool) (bool, error) {
	files := []string{"tcp", "tcp6"}
	if udp {
		files = []string{"udp", "udp6"}
	}
	for _, f := range files {
		var table []byte
		err := where.Do(func() (err error) {
			table, err = os.ReadFile("/proc/thread-self/net/" + f)
			return err
		})
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return false, fmt.Errorf("look for port %d: %w", port, err)
		}
		if tableHasPort(table, port, udp) {
			return true, nil
		}
	}
	return false, nil
}

// Socket states in /proc/net/tcp, include/net/tcp_states.h. An unconnected UDP
// socket shows as closed.
const (
	stateClosed = "07"
	stateListen = "0A"
)

// tableHasPort looks for a listening socket in the text of /proc/net/tcp or
// /proc/net/udp.
func tableHasPort(table []byte, port uint16, udp bool) bool {
	want := stateListen
	if udp {
		want = stateClosed
	}
	for sc := bufio.NewScanner(bytes.NewReader(table)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		if len(f) < 4 || f[3] != want {
			continue
		}
		_, hex, ok := strings.Cut(f[1], ":")
		if !ok {
			continue
		}
		if p, err := strconv.ParseUint(hex, 16, 16); err == nil && uint16(p) == port {
			return true
		}
	}
	return false
}
