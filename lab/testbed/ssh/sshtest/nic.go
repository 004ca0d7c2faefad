package sshtest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// CompleteOnSender makes the data devices of the hosts complete each TCP superframe on the
// sender's CPU, as a NIC does. A veth completes it where the receiver frees it. The program
// sends a clone, which has no socket, and hands the frame itself to lo: lo releases the socket,
// and the stack drops the frame, because it is for another host. A program of a tcx link cannot
// consume a frame in another way without an error for the sender.
func (s *Site) CompleteOnSender() {
	s.t.Helper()
	const (
		ifindexOffset, socketOffset = 40, 168 // of __sk_buff, linux/bpf.h
		protocolOffset              = 12      // of bpf_sock
		lo                          = 1       // ifindex of lo in each namespace
		next                        = "next"
	)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, socketOffset, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, next),
		asm.FnSkFullsock.Call(),
		asm.JEq.Imm(asm.R0, 0, next),
		asm.LoadMem(asm.R0, asm.R0, protocolOffset, asm.Word),
		asm.JNE.Imm(asm.R0, unix.IPPROTO_TCP, next),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.LoadMem(asm.R2, asm.R6, ifindexOffset, asm.Word),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnCloneRedirect.Call(),
		asm.JNE.Imm(asm.R0, 0, next),
		asm.Mov.Imm(asm.R1, lo),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, -1).WithSymbol(next), // TCX_NEXT
		asm.Return(),
	}})
	s.Must(err)
	s.t.Cleanup(func() { program.Close() })
	for _, h := range s.Hosts {
		s.Must(h.Space.Do(func() error {
			data, err := h.Space.Link("data")
			if err != nil {
				return err
			}
			// The link stays when the lab moves the device to another namespace.
			l, err := link.AttachTCX(link.TCXOptions{Interface: data.Attrs().Index, Program: program, Attach: ebpf.AttachTCXEgress})
			if err == nil {
				s.t.Cleanup(func() { l.Close() })
			}
			return err
		}))
	}
}
