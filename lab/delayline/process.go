// Package delayline delays the frames of a link. A process reads each frame from a packet socket,
// waits until its delay is over, and sends it on. It measures how much later than that it sends each frame.
package delayline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"windtunnel/lab/child"
)

// Command is the first argument of the windtunnel program when it runs as the process of delay lines.
const Command = "delay-line"

// Hop names two devices by their indexes. A line takes the frames that leave From, and sends them
// out of To.
type Hop struct{ From, To int }

// Room is the maximum memory of the frames that wait in a line, in bytes, with the kernel's overhead. The
// kernel drops frames that find no room.
const Room = 64 << 20

// Process is a child process with one line for each hop. It ends when its standard input is closed, and so also
// when this program ends. After Keep it goes on.
type Process struct {
	*child.Piped
	lines []stats
	cpu   int
}

// Start starts a process on a CPU. in calls a function in the network namespace of the devices, where Start
// opens the sockets. by starts a command on the CPU.
func Start(argv []string, delay time.Duration, cpu int, hops []Hop, in func(func() error) error, by func(*exec.Cmd) error) (_ *Process, err error) {
	size := len(hops) * int(unsafe.Sizeof(stats{}))
	fd, err := unix.MemfdCreate(Command, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make the memory of a delay line: %w", err)
	}
	files := []*os.File{os.NewFile(uintptr(fd), Command)}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("make the memory of a delay line: %w", err)
	}
	for _, hop := range hops {
		if err := in(func() error { return open(&files, hop) }); err != nil {
			return nil, fmt.Errorf("open the packet sockets of a delay line (needs CONFIG_PACKET): %w", err)
		}
	}
	p := &Process{cpu: cpu}
	if p.lines, err = mapStats(fd, len(hops)); err != nil {
		return nil, err
	}
	cmd := child.Command(context.Background(), append(argv, strconv.FormatInt(int64(delay), 10), strconv.Itoa(len(hops))),
		"GOMAXPROCS="+strconv.Itoa(len(hops)+2), "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, files
	if p.Piped, err = child.StartPiped(cmd, by); err != nil {
		return nil, errors.Join(fmt.Errorf("start a delay line: %w", err), p.unmap())
	}
	return p, nil
}

// open opens the sockets of a hop and appends them to files.
func open(files *[]*os.File, hop Hop) error {
	for _, end := range []struct {
		device   int
		protocol uint16
		option   int // bound of the socket's memory; the kernel doubles it
	}{{hop.From, unix.ETH_P_ALL, unix.SO_RCVBUFFORCE}, {hop.To, 0, unix.SO_SNDBUFFORCE}} {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		*files = append(*files, os.NewFile(uintptr(fd), "packet socket"))
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, end.option, Room/2),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1),
			unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: end.device, Protocol: end.protocol<<8 | end.protocol>>8}),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// mapStats maps the memory that the lab shares with the process.
func mapStats(fd, lines int) ([]stats, error) {
	memory, err := unix.Mmap(fd, 0, lines*int(unsafe.Sizeof(stats{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the memory of a delay line: %w", err)
	}
	return unsafe.Slice((*stats)(unsafe.Pointer(&memory[0])), lines), nil
}

func (p *Process) unmap() error {
	return unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&p.lines[0])), len(p.lines)*int(unsafe.Sizeof(stats{}))))
}

// Keep lets the process run after the end of this program.
func (p *Process) Keep() error {
	_, err := p.Write([]byte(keep))
	return errors.Join(err, p.close())
}

const keep = "keep\n"

// Stop ends the process.
func (p *Process) Stop() error {
	return errors.Join(p.Piped.Stop(0), p.close())
}

func (p *Process) close() error {
	p.CloseOutput()
	return errors.Join(p.Close(), p.unmap())
}

// Clock returns the CPU that the process runs on, and the CPU time of its lines in seconds. With real-time priority
// no other program preempts the lines, so this is the time in which they did not wait. Without, it is the kernel's
// figure of the process. Both include softirqs that interrupted the lines.
func (p *Process) Clock() (cpu int, seconds float64, err error) {
	busy, normal := int64(0), false
	for i := range p.lines {
		busy += p.lines[i].busy.Load()
		normal = normal || p.lines[i].normal.Load() == 1
	}
	if !normal {
		return p.cpu, time.Duration(busy).Seconds(), nil
	}
	var used unix.Timespec
	clock := int32(^p.PID())<<3 | 2 // CPUCLOCK_SCHED of a process, include/linux/posix-timers.h
	if err := unix.ClockGettime(clock, &used); err != nil {
		return 0, 0, fmt.Errorf("read the CPU time of the delay line: %w", errors.Join(err, p.failure()))
	}
	return p.cpu, time.Duration(used.Nano()).Seconds(), nil
}

func (p *Process) failure() error {
	if p.HasEnded() {
		return fmt.Errorf("it has ended: %v", p.State())
	}
	return nil
}

// Reading has the sums over all lines since their start.
type Reading struct {
	Late   Counts // frames by lateness: time of release less time due
	Lost   uint64 // frames that the line dropped
	Normal bool   // a line has no real-time priority
}

// Add adds the lines of the process to a reading.
func (p *Process) Add(r *Reading) {
	if r.Late == nil {
		r.Late = make(Counts, buckets)
	}
	for i := range p.lines {
		s := &p.lines[i]
		for b := range s.late {
			r.Late[b] += s.late[b].Load()
		}
		r.Lost += uint64(s.refused.Load()) + uint64(s.cut.Load())
		r.Normal = r.Normal || s.normal.Load() == 1
	}
}

// Since returns the difference to an earlier reading.
func (r Reading) Since(before Reading) Reading {
	d := Reading{Late: make(Counts, len(r.Late)), Lost: r.Lost - before.Lost, Normal: r.Normal}
	for b := range r.Late {
		d.Late[b] = r.Late[b] - before.Late[b]
	}
	return d
}

// Serve runs the lines in the process. Its arguments are the delay in nanoseconds and the number of lines. File 3
// is the memory for the figures; then come two sockets for each line.
func Serve(args []string, input io.Reader) error {
	if len(args) != 2 {
		return errors.New("the lab starts this command with a delay and a number of lines")
	}
	delay, err1 := strconv.ParseInt(args[0], 10, 64)
	lines, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	shared, err := mapStats(3, lines)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for i := range lines {
		l := newLine(4+2*i, 5+2*i, time.Duration(delay), &shared[i])
		go func() { ended <- l.carry() }()
	}
	go func() {
		said, err := io.ReadAll(input)
		if err == nil && string(said) == keep {
			if err = dropErrors(); err == nil {
				return
			}
		}
		ended <- err
	}()
	return <-ended
}

// dropErrors replaces the standard error that this process has from the program that started it. Otherwise a program
// that reads this output to its end would wait for the end of this process.
func dropErrors() error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	return unix.Dup3(int(null.Fd()), 2, 0)
}
