package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/parallel"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/vm"
	"windtunnel/lab/vm/image"
	"windtunnel/lab/vm/kernel"
)

// guest is an endpoint that is a VM, with the connection to the agent inside the VM.
type guest struct {
	name   string
	vm     *vm.VM
	client *Client
}

const (
	// bootTime is the maximum time for the boot of a guest. It suffices for an
	// emulated guest on a loaded machine: with ten times as many runnable programs as
	// CPUs, a boot takes about a minute. On an idle machine it takes some seconds.
	bootTime = 100 * time.Second
	// mostQueues is the maximum number of queues of a guest's network device, in
	// each direction. virtio_net uses a pair of queues for each CPU.
	mostQueues = 8
	// self is a path that opens the running program, even after its file has been
	// replaced.
	self = "/proc/self/exe"
)

func queuesOf(e suite.Endpoint) int { return min(max(e.CPUs, 1), mostQueues) }

// boot starts a VM for each endpoint, all at the same time. It returns when the network
// devices of all guests are configured.
func (s *Service) boot(ctx context.Context, args AttachArgs, n *system.Node, reply *Attached) error {
	base, err := s.vmConfig(ctx, args, reply)
	if err != nil {
		return err
	}
	folder := space.Home(args.SpaceBase)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the directory for the files of VMs: %w", err)
	}
	s.hasHome = true
	guests := slices.DeleteFunc(slices.Clone(n.Endpoints), func(e system.Endpoint) bool { return e.Guest == nil })
	for _, e := range guests {
		c := base
		c.Name, c.Tap, c.MAC = e.Name, e.Tap(), e.MAC
		m, err := vm.Start(c, folder, func(cmd *exec.Cmd) error { return s.startIn(s.node, cmd) })
		if err != nil {
			return err
		}
		s.guests[e.Name] = &guest{name: e.Name, vm: m}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bootTime, fmt.Errorf("the guest did not boot within %v", bootTime))
	defer cancel()
	var mu sync.Mutex
	return parallel.Each(guests, func(_ int, e system.Endpoint) error {
		settings, err := s.guests[e.Name].ready(ctx, args, e)
		if err == nil {
			err = system.SteerTap(n, e)
		}
		mu.Lock()
		defer mu.Unlock()
		reply.Settings.Add(e.Name, settings)
		return err
	})
}

// vmConfig returns the configuration that all VMs of the node share.
func (s *Service) vmConfig(ctx context.Context, args AttachArgs, reply *Attached) (vm.Config, error) {
	c := vm.Config{CPUs: max(args.Endpoint.CPUs, 1), Memory: args.Endpoint.Memory, Queues: queuesOf(args.Endpoint)}
	if _, err := exec.LookPath(vm.Program); err != nil {
		return c, fmt.Errorf("VMs need %s, which is not installed; get it with: apt-get install qemu-system-x86", vm.Program)
	}
	k, err := kernel.Find()
	if err != nil {
		return c, err
	}
	cache, err := kernel.Cache()
	if err != nil {
		return c, err
	}
	c.Kernel = k.Image
	if c.Image, err = image.Built(image.Spec{Kernel: k, Init: self, Programs: args.Programs}, cache); err != nil {
		return c, err
	}
	c.Accelerator = vm.KVM
	if why := vm.TryKVM(ctx, k); why != nil {
		if err := ctx.Err(); err != nil {
			return c, context.Cause(ctx)
		}
		c.Accelerator = vm.TCG
		reply.Warnings = append(reply.Warnings, sample.Emulated)
		reply.Settings.Note("VMs emulated because", why.Error())
	}
	c.VHost = c.Accelerator == vm.KVM && unix.Access("/dev/vhost-net", unix.R_OK|unix.W_OK) == nil
	reply.Settings.Note("VMs", fmt.Sprintf("%s, %s, kernel %s, vhost %t, %d queues", args.Endpoint, c.Accelerator, k.Release, c.VHost, c.Queues))
	return c, nil
}

// ready waits for the guest's agent and configures its device.
func (g *guest) ready(ctx context.Context, args AttachArgs, e system.Endpoint) (space.Settings, error) {
	cpus := args.CPUs
	if args.Unpinned {
		cpus = nil
	}
	conn, err := g.vm.Connect(ctx, cpus)
	if err != nil {
		return space.Settings{}, err
	}
	g.client = newClient("VM "+g.name, conn, guestPatience)
	if _, err := g.client.Hello(ctx); err != nil {
		return space.Settings{}, g.vm.Fail(ctx, err)
	}
	settings, err := ask[space.Settings](ctx, g.client, "ConfigureGuest", ConfigureGuestArgs{e.Guest.Config, args.Endpoint})
	if err != nil {
		return space.Settings{}, g.vm.Fail(ctx, err)
	}
	return settings, nil
}

// stopGuests ends all VMs. The caller holds mu.
func (s *Service) stopGuests() error {
	var errs []error
	for name, g := range s.guests {
		if g.client != nil {
			g.client.Close() // an error has no effect: Stop ends QEMU
		}
		errs = append(errs, g.vm.Stop())
		delete(s.guests, name)
	}
	return errors.Join(errs...)
}

// inGuest returns the command line with which the agent in a guest starts a program.
// In a guest the windtunnel program is at the path of init.
func inGuest(argv []string) []string {
	own, err := os.Executable()
	if argv[0] == Self {
		return append([]string{image.Init}, argv[1:]...)
	}
	if err != nil || argv[0] != own && filepath.Clean(argv[0]) != own {
		return argv
	}
	return append([]string{image.Init}, argv[1:]...)
}

// ConfigureGuestArgs has the settings of a guest's device.
type ConfigureGuestArgs struct {
	Config   system.GuestConfig
	Endpoint suite.Endpoint
}

// ConfigureGuest runs in a guest's agent. It sets MTU, addresses, routes and other
// settings of the guest's network device, and returns the values that it set.
func (s *Service) ConfigureGuest(args ConfigureGuestArgs, reply *space.Settings) error {
	if err := system.ConfigureGuest(s.node, args.Config, args.Endpoint); err != nil {
		return err
	}
	*reply = s.node.Settings()
	return nil
}
