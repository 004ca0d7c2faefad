package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netns"

	"windtunnel/lab/meter"
	"windtunnel/lab/priority"
	"windtunnel/lab/space"
)

// MeterArgs say what to meter on the node.
type MeterArgs struct {
	Node    string
	CPUs    []int
	Devices []meter.Device // Namespace is a container's name, empty for the node
	Ports   meter.PortRange
	Every   time.Duration // between the points of the series; 0 for none
	Most    int           // points at most
	// FineIdle is the setting of the same name in meter.Config.
	FineIdle bool
}

// TrackArgs name the process of a tool whose CPU time is metered.
type TrackArgs struct {
	Process int
	Label   string
	// PID is set for a process that another agent on this machine started, as PID in the
	// PID namespace with the inode Processes. Process is then not used.
	PID       int
	Processes uint32
}

// series is the time series while it is recorded.
type series struct {
	restore func() // restores the priority of the agent's threads
	stop    chan struct{}
	done    chan struct{}

	points []meter.Light
	err    error
}

// MeterStart opens the meter and begins the time series. A meter that runs
// already is replaced.
func (s *Service) MeterStart(args MeterArgs, _ *struct{}) error {
	if err := s.MeterStop(struct{}{}, new([]meter.Light)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	config := meter.Config{Node: args.Node, CPUs: args.CPUs, FineIdle: args.FineIdle, Devices: s.devicesOf("", args.Devices), Groups: s.groups}
	if s.attached != nil {
		config.Limited = space.Cgroup(s.attached.Name)
	}
	config.Namespaces = append(config.Namespaces, meter.Namespace{NS: netns.None(), NoSockets: len(s.containers)+len(s.guests) > 0})
	for name, sp := range s.containers {
		config.Namespaces = append(config.Namespaces, meter.Namespace{Name: name, NS: sp.NS})
	}
	m, err := meter.New(config)
	if err != nil {
		return err
	}
	m.SetPorts(args.Ports)
	if err := s.meterGuests(m, args); err != nil {
		m.Close()
		return err
	}
	s.meter = m
	s.series = &series{restore: priority.RaiseSession(), stop: make(chan struct{}), done: make(chan struct{})}
	go func(sr *series) {
		defer close(sr.done)
		if args.Every > 0 {
			sr.points, sr.err = m.Record(args.Every, args.Most, sr.stop)
		}
	}(s.series)
	return nil
}

func (s *Service) theMeter() (*meter.Meter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meter == nil {
		return nil, errors.New("no meter runs on this node")
	}
	return s.meter, nil
}

// The file systems of the machine, from a container that sees the machine's processes.
const (
	machineCgroups = "/proc/1/root/sys/fs/cgroup"
	machineProc    = "/proc"
)

// MeterGroups finds control groups of the machine, whose CPU time all later meters read. The
// reply has their names.
func (s *Service) MeterGroups(args meter.GroupArgs, names *[]string) error {
	groups, err := meter.FindGroups(machineCgroups, machineProc, args)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = groups
	for _, g := range groups {
		*names = append(*names, g.Name)
	}
	return nil
}

// MeterGroups makes the agent meter control groups of its machine, and returns the names of
// those that the machine has.
func (c *Client) MeterGroups(ctx context.Context, args meter.GroupArgs) ([]string, error) {
	return ask[[]string](ctx, c, "MeterGroups", args)
}

// MeterTrack adds a process of a tool.
func (s *Service) MeterTrack(args TrackArgs, _ *struct{}) error {
	m, err := s.theMeter()
	if err != nil {
		return err
	}
	if args.PID != 0 {
		return s.trackElsewhere(m, args)
	}
	p, err := s.process(args.Process)
	if err != nil {
		return err
	}
	if pid := p.PID(); pid > 0 { // the CPU time of guests is metered as a whole
		m.Track(args.Label, pid)
	}
	return nil
}

// MeterRead reads all meters. It reads the CPU times of the node first. If the reading starts a window,
// the CPU time of the other steps is part of the window. If it ends a window, this time is not part of it.
func (s *Service) MeterRead(_ struct{}, r *NodeReading) error {
	m, err := s.theMeter()
	if err != nil {
		return err
	}
	if r.Node, err = m.Read(); err != nil {
		return err
	}
	if err := s.readGuests(&r.Node); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Machine, err = s.machine.read()
	return err
}

// MeterGlance takes a light reading.
func (s *Service) MeterGlance(_ struct{}, l *meter.Light) error {
	m, err := s.theMeter()
	if err != nil {
		return err
	}
	return m.ReadLight(l)
}

// MeterStop ends the series and closes the meter.
func (s *Service) MeterStop(_ struct{}, reply *[]meter.Light) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meter == nil {
		return nil
	}
	close(s.series.stop)
	<-s.series.done
	s.series.restore()
	s.meter.Close()
	*reply = s.series.points
	err := s.series.err
	s.meter, s.series = nil, nil
	if err != nil {
		return fmt.Errorf("record the time series: %w", err)
	}
	return nil
}
