package agent

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/system"
)

// Service answers the engine. Its exported methods are the protocol.
type Service struct {
	version string
	node    *space.Space
	spawner *spawner

	mu         sync.Mutex
	system     system.System
	attached   *system.Node
	containers map[string]*space.Space
	processes  []*process
	meter      *meter.Meter
	series     *series
}

// Serve runs an agent over a pipe until it ends, and then ends what the agent
// started. Namespaces and devices stay: they are the executor's.
func Serve(version string, in io.ReadCloser, out io.WriteCloser) error {
	node, err := space.Open("")
	if err != nil {
		return err
	}
	defer node.Close()
	s := &Service{version: version, node: node, spawner: newSpawner(node), containers: map[string]*space.Space{}}
	srv := rpc.NewServer()
	if err := srv.RegisterName(rpcName, s); err != nil {
		return fmt.Errorf("register the agent's service: %w", err)
	}
	srv.ServeConn(pipe{in, out})
	s.killAll()
	return nil
}

type pipe struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p pipe) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p pipe) Close() error                { return errors.Join(p.ReadCloser.Close(), p.out.Close()) }

// Hello introduces the agent.
func (s *Service) Hello(_ struct{}, reply *Hello) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("read the agent's CPU affinity: %w", err)
	}
	reply.PID, reply.Version = os.Getpid(), s.version
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
	n := &system.Node{Index: args.Index, Name: args.SpaceBase, Space: s.node, Fabric: args.Fabric, Underlay: args.Underlay, MTU: args.MTU, CPUs: args.CPUs, Steer: args.Steer}
	s.system, s.attached = sys, n
	for _, c := range args.Containers {
		sp, err := space.Create(args.SpaceBase + "-" + c.Name)
		if err != nil {
			return err
		}
		s.containers[c.Name] = sp
		if err := sp.Workloads(); err != nil {
			return err
		}
		n.Endpoints = append(n.Endpoints, system.Endpoint{Name: c.Name, Number: c.Number, Space: sp, V4: c.V4, V6: c.V6, MAC: c.MAC})
	}
	for node, containers := range args.Everywhere {
		for _, c := range containers {
			n.Everywhere = append(n.Everywhere, system.Place{Node: node, Name: c.Name, Number: c.Number, V4: c.V4, V6: c.V6, MAC: c.MAC})
		}
	}
	if err := sys.Attach(n); err != nil {
		return fmt.Errorf("attach %s: %w", sys.Name(), err)
	}
	reply.Devices = sys.Devices(n)
	reply.Settings = s.node.Settings()
	for name, sp := range s.containers {
		for k, v := range sp.Settings() {
			reply.Settings[name+" "+k] = v
		}
	}
	return nil
}

// Detach takes the system down and removes the containers.
func (s *Service) Detach(_ struct{}, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.system == nil {
		return nil
	}
	errs := []error{s.system.Detach(s.attached)}
	for name, sp := range s.containers {
		errs = append(errs, sp.Close(), space.Delete(sp.Name))
		delete(s.containers, name)
	}
	s.system, s.attached = nil, nil
	return errors.Join(errs...)
}

// at finds an endpoint's namespace; "" is the node. The caller holds mu.
func (s *Service) at(endpoint string) (*space.Space, error) {
	if endpoint == "" {
		return s.node, nil
	}
	if sp, ok := s.containers[endpoint]; ok {
		return sp, nil
	}
	return nil, fmt.Errorf("container %q is not on this node", endpoint)
}

func (s *Service) where(endpoint string) (*space.Space, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(endpoint)
}
