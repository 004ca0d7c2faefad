package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"windtunnel/lab/meter"
	"windtunnel/lab/profile"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// Service answers the engine. Its exported methods are the protocol.
type Service struct {
	version string
	node    *space.Space

	mu         sync.Mutex
	system     system.System
	attached   *system.Node
	containers map[string]*space.Space
	adopted    map[string]bool // containers that the agent did not make
	elsewhere  []int           // PIDs of tracked processes that other agents started
	guests     map[string]*guest
	hasHome    bool // the node's home has files of guests
	processes  []running
	meter      *meter.Meter
	groups     []meter.Group // of every meter
	series     *series
	machine    machineMeters    // without meters if the agent of another node watches the machine
	sampler    *profile.Sampler // set during a CPU profile
	changes    changes

	booting sync.Mutex
	abandon context.CancelCauseFunc // ends the boot of guests; nil before the first boot
}

// Serve runs an agent over a pipe until the pipe ends. Then it ends all programs that
// the agent started. Namespaces and devices stay, because the executor owns them. more
// has other services for the same pipe, by their names in net/rpc.
func Serve(version string, in io.ReadCloser, out io.WriteCloser, more map[string]any) error {
	node, err := space.Open("")
	if err != nil {
		return err
	}
	defer node.Close()
	s := &Service{version: version, node: node, containers: map[string]*space.Space{}, adopted: map[string]bool{}, guests: map[string]*guest{}}
	srv := rpc.NewServer()
	if err := srv.RegisterName(ServiceName, s); err != nil {
		return fmt.Errorf("register the agent's service: %w", err)
	}
	for name, service := range more {
		if err := srv.RegisterName(name, service); err != nil {
			return fmt.Errorf("register the service %s: %w", name, err)
		}
	}
	srv.ServeConn(Pipe{in, out})
	s.abandonBoot()
	s.killAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.close()
	return errors.Join(s.abandonProfile(), s.stopGuests())
}

// Pipe combines two streams, one for each direction, into a connection.
type Pipe struct {
	io.ReadCloser
	Out io.WriteCloser
}

func (p Pipe) Write(b []byte) (int, error) { return p.Out.Write(b) }

// Close closes both streams: first Out, so that the other end reads EOF.
func (p Pipe) Close() error { return errors.Join(p.Out.Close(), p.ReadCloser.Close()) }

// Hello describes the agent.
func (s *Service) Hello(_ struct{}, reply *Hello) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("read the agent's CPU affinity: %w", err)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("read the kernel's release: %w", err)
	}
	reply.Protocol, reply.Version, reply.PID = Protocol, s.version, os.Getpid()
	reply.Kernel, reply.Boot = unix.ByteSliceToString(name.Release[:]), Boot()
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			reply.CPUs = append(reply.CPUs, c)
		}
	}
	return nil
}

// Attach makes the containers and brings the system up.
func (s *Service) Attach(args AttachArgs, reply *Attached) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.system != nil {
		return fmt.Errorf("attach %s: %s is attached already", args.System, s.system.Name())
	}
	sys, err := system.ByName(args.System)
	if err != nil {
		return err
	}
	n := &system.Node{Index: args.Index, Name: args.SpaceBase, Space: s.node, Fabric: args.Fabric, Team: args.Team, Underlay: args.Underlay, MTU: args.MTU, CPUs: args.CPUs, Steer: args.Steer}
	s.system, s.attached = sys, n
	for _, c := range args.Containers {
		e, err := s.endpoint(args, c)
		if err != nil {
			return err
		}
		n.Endpoints = append(n.Endpoints, e)
	}
	for node, containers := range args.Everywhere {
		for _, c := range containers {
			n.Everywhere = append(n.Everywhere, system.NodeEndpoint{Node: node, Name: c.Name, V4: c.V4, V6: c.V6, MAC: c.MAC})
		}
	}
	if err := s.prepareChanges(args, n); err != nil {
		return err
	}
	if err := sys.Attach(n); err != nil {
		return fmt.Errorf("attach %s: %w", sys.Name(), err)
	}
	if err := system.SetEndpoints(n, args.Endpoint); err != nil {
		return err
	}
	reply.Devices = sys.Devices(n)
	reply.Settings = s.node.Settings()
	for name, sp := range s.containers {
		reply.Settings.Add(name, sp.Settings())
	}
	if args.Endpoint.Kind == suite.VM && len(n.Endpoints) > 0 {
		return s.boot(s.bootContext(), args, n, reply)
	}
	return nil
}

// endpoint creates the namespace of a container and returns its endpoint. A VM gets its namespace when it starts.
func (s *Service) endpoint(args AttachArgs, c Container) (e system.Endpoint, err error) {
	e = system.Endpoint{Name: c.Name, V4: c.V4, V6: c.V6, MAC: c.MAC}
	switch {
	case c.Name == "":
		e.Space = s.node
	case args.Endpoint.Kind == suite.VM:
		e.Guest = &system.Guest{Queues: queuesOf(args.Endpoint)}
	case c.Network != 0:
		e.Space, err = s.adopt(c)
	default:
		if e.Space, err = space.Create(args.SpaceBase + "-" + c.Name); err == nil {
			s.containers[c.Name] = e.Space
			err = e.Space.Workloads()
		}
	}
	return e, err
}

// bootContext returns a context for the boot of guests, which abandonBoot ends. The
// context has a separate lock, because Attach holds mu during the boot.
func (s *Service) bootContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.booting.Lock()
	defer s.booting.Unlock()
	s.abandon = cancel
	return ctx
}

func (s *Service) abandonBoot() {
	s.booting.Lock()
	defer s.booting.Unlock()
	if s.abandon != nil {
		s.abandon(errors.New("the system is being removed"))
	}
}

// Detach removes the system, the containers and the VMs.
func (s *Service) Detach(_ struct{}, _ *struct{}) error {
	s.abandonBoot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.system == nil {
		return nil
	}
	s.endChanges()
	errs := []error{s.stopGuests(), s.system.Detach(s.attached)}
	if spare := s.attached.Spare.Space; spare != nil {
		errs = append(errs, spare.Close(), space.Delete(spare.Name))
	}
	if s.hasHome {
		errs = append(errs, space.DeleteHome(s.attached.Name))
		s.hasHome = false
	}
	for name, sp := range s.containers {
		errs = append(errs, sp.Close())
		if !s.adopted[name] {
			errs = append(errs, space.Delete(sp.Name))
		}
		delete(s.containers, name)
		delete(s.adopted, name)
	}
	s.system, s.attached = nil, nil
	return errors.Join(errs...)
}

// LastWords returns the last output of the system's programs on this node.
func (s *Service) LastWords(_ struct{}, reply *string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attached != nil {
		*reply = s.attached.LastWords()
	}
	return nil
}

// Identity identifies the processes of a node. With it, the machine's other
// processes can be distinguished from them.
type Identity struct {
	PID        int      // PID of the agent, in the agent's PID namespace
	Namespaces []uint32 // inodes of the network namespaces: the node's, then its containers'
}

// Identity returns the identity of the node's processes, including the processes in
// the containers that Attach made.
func (s *Service) Identity(_ struct{}, reply *Identity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply.PID = os.Getpid()
	inode, err := s.node.Inode()
	if err != nil {
		return fmt.Errorf("identify the node's network namespace: %w", err)
	}
	reply.Namespaces = []uint32{inode}
	for name, sp := range s.containers {
		inode, err := sp.Inode()
		if err != nil {
			return fmt.Errorf("identify the network namespace of container %s: %w", name, err)
		}
		reply.Namespaces = append(reply.Namespaces, inode)
	}
	return nil
}

// Identity asks the agent for the identity of the node's processes.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	return ask[Identity](ctx, c, "Identity", struct{}{})
}
