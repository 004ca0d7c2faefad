package netdev

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"windtunnel/internal/pause"
)

// Event is a set of possible changes in the kernel.
type Event struct {
	Links map[int]LinkEvent // devices that have changed, by ifindex
	Other bool              // addresses, routes or neighbours have changed, or any device
}

// LinkEvent is a set of changes of a device.
type LinkEvent uint8

const (
	LinkChanged LinkEvent = 1 << iota // the device is new or has changed
	LinkDeleted                       // it was deleted; another device may have its ifindex now
)

// Add adds the changes of another event.
func (e *Event) Add(other Event) {
	e.Other = e.Other || other.Other
	if e.Links == nil {
		e.Links = other.Links
		return
	}
	for index, l := range other.Links {
		e.Links[index] |= l
	}
}

func (e Event) isEmpty() bool { return !e.Other && len(e.Links) == 0 }

// eventBuffer is the size of the socket's buffer for events, in bytes. If the buffer overflows,
// events are lost, and the agent must check all ports. The kernel's default is 212,992 bytes.
const eventBuffer = 4 << 20

// Watch sends the changes in a namespace until ctx ends. Pending events are merged;
// none is lost.
func Watch(ctx context.Context, s *Space) (<-chan Event, error) {
	groups := []uint{
		unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	}
	var socket *nl.NetlinkSocket
	if err := s.Do(func() (err error) { socket, err = nl.Subscribe(unix.NETLINK_ROUTE, groups...); return err }); err != nil {
		return nil, fmt.Errorf("watch the devices and routes of network namespace %q: %w", s.Name, err)
	}
	socket.SetReceiveBufferSize(eventBuffer, true) // if the kernel refuses it, the default size stays
	raw := make(chan Event)
	go func() {
		<-ctx.Done()
		socket.Close()
	}()
	go func() {
		defer close(raw)
		for {
			e, ok := receive(socket)
			if !ok {
				return
			}
			if !e.isEmpty() {
				raw <- e
			}
		}
	}()
	out := make(chan Event)
	go merge(raw, out)
	return out, nil
}

// WatchMounts sends after mounts of the agent's mount namespace changed, until ctx ends: a
// network namespace gets its name by a mount (ip-netns(8)). Changes are coalesced.
func WatchMounts(ctx context.Context) (<-chan struct{}, error) {
	// os.Open would add the file to the epoll of Go's runtime. Each poll of the file consumes the
	// event (mounts_poll), so the runtime would take some of them.
	mounts, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("watch mounts: %w", err)
	}
	ended, end, err := os.Pipe()
	if err != nil {
		unix.Close(mounts)
		return nil, fmt.Errorf("watch mounts: %w", err)
	}
	context.AfterFunc(ctx, func() { end.Close() })
	changed := make(chan struct{}, 1)
	go func() {
		defer unix.Close(mounts)
		defer ended.Close()
		for {
			fds := []unix.PollFd{{Fd: int32(mounts), Events: unix.POLLPRI}, {Fd: int32(ended.Fd())}}
			if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
				continue
			} else if err != nil || fds[1].Revents != 0 {
				return
			}
			pause.Wake(changed)
		}
	}()
	return changed, nil
}

// receive returns the event of one datagram; false: the socket is closed.
func receive(socket *nl.NetlinkSocket) (Event, bool) {
	messages, _, err := socket.Receive()
	if errors.Is(err, unix.ENOBUFS) { // netlink(7): messages were lost
		return Event{Other: true}, true
	}
	if err != nil {
		return Event{}, false
	}
	e := Event{Links: map[int]LinkEvent{}}
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			l, is := nl.DeserializeIfInfomsg(m.Data), LinkChanged
			if m.Header.Type == unix.RTM_DELLINK && l.Family == unix.AF_UNSPEC { // other families: the device left a bridge
				is = LinkDeleted
			}
			e.Links[int(l.Index)] |= is
		case unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWROUTE, unix.RTM_DELROUTE, unix.RTM_DELNEIGH:
			e.Other = true
		}
	}
	return e, true
}

// merge merges pending events into one.
func merge(in <-chan Event, out chan<- Event) {
	defer close(out)
	var held Event
	for {
		if held.isEmpty() {
			e, ok := <-in
			if !ok {
				return
			}
			held = e
		}
		select {
		case e, ok := <-in:
			if !ok {
				return
			}
			held.Add(e)
		case out <- held:
			held = Event{}
		}
	}
}
