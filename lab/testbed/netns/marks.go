package netns

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// marks counts the bytes that enter the wire by the DSCP of their frames.
type marks struct {
	objects marksObjects
	nodes   map[uint32]string // names, by the ifindex of the port
}

// watchMarks attaches the program that reads the DSCP to each port of the wire. The kernel removes the program
// together with the port.
func (tb *Testbed) watchMarks() error {
	m := &marks{nodes: map[uint32]string{}}
	if err := loadMarksObjects(&m.objects, nil); err != nil {
		return fmt.Errorf("load the program that reads the DSCP of frames (needs Linux 5.4 with BPF and CAP_BPF): %w", err)
	}
	tb.marks = m
	for i, n := range tb.nodes {
		for link := range tb.spec.Fabric.Links {
			l, err := tb.wire.space.Link(portDevice(i, link))
			if err != nil {
				return err
			}
			m.nodes[uint32(l.Attrs().Index)] = n.Name()
			if err := addFilter(tb.wire.space, l, netlink.HANDLE_MIN_INGRESS, marksPriority, m.objects.ReadMark, marksProgReadMark); err != nil {
				return err
			}
		}
	}
	return nil
}

// Marks implements testbed.Fabric.
func (tb *Testbed) Marks() (map[string]testbed.Marks, error) {
	if tb.marks == nil {
		return nil, nil
	}
	sent := map[string]testbed.Marks{}
	for _, n := range tb.nodes {
		sent[n.Name()] = testbed.Marks{}
	}
	var key marksMark
	var perCPU []uint64
	entries := tb.marks.objects.Marked.Iterate()
	for entries.Next(&key, &perCPU) {
		for _, bytes := range perCPU {
			sent[tb.marks.nodes[key.Port]][suite.DSCP(key.Dscp)] += bytes
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the DSCPs of the frames on the wire: %w", err)
	}
	return sent, nil
}

// close closes the handles of marks, which can be nil.
func (m *marks) close() error {
	if m == nil {
		return nil
	}
	return m.objects.Close()
}
