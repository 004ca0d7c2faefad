// Package host runs on a machine that is reached over a transport, such as SSH. It
// reports what the machine has, keeps other measurements away from it, and prepares the
// nodes of testbeds. When its connection ends, it removes everything that it made.
package host

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/agent"
	"windtunnel/lab/meter"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/space"
)

// Command is the argument with which the windtunnel program serves this package.
const Command = "host"

// serviceName is the service's name in net/rpc.
const serviceName = "Host"

// Service answers the engine. Its exported methods are the protocol.
type Service struct {
	session sshSession // to the engine

	mu    sync.Mutex
	lock  *space.Lock
	roots *os.File // root's lock file, if the service has no root
	nodes []string // namespaces of nodes
}

// Serve serves the machine over a pipe until the pipe ends, or until the engine is
// silent for too long. Then it removes the nodes and releases the lock. session is
// sshd's variable SSH_CONNECTION.
func Serve(version, session string, in io.Reader, out io.WriteCloser) error {
	// Without a handler, a write to a closed pipe or the end of the session ends the
	// process before it has removed its nodes.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE, unix.SIGHUP)
	s := &Service{session: parseSession(session)}
	err := agent.Serve(version, agent.Expire(in, Silence), out, map[string]any{serviceName: s})
	return errors.Join(err, s.close())
}

// Silence is the time after which the engine counts as lost. It is longer than the time
// after which the engine counts an agent as lost.
const Silence = 15 * time.Second

func (s *Service) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, name := range s.nodes {
		_, err := space.Clean(name)
		errs = append(errs, err)
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	if s.roots != nil {
		errs = append(errs, s.roots.Close())
	}
	return errors.Join(errs...)
}

// SurveyArgs ask for the facts about a machine.
type SurveyArgs struct {
	Programs []program.Program // that a plan needs
	Data     []netip.Addr      // addresses of the machine that the traffic uses
	// Some permits addresses that the device with the first one lacks.
	Some bool
}

// Survey has the facts about a machine.
type Survey struct {
	Facts    probe.Facts
	Lacks    map[string]string // by name of a program: why it cannot be used
	Programs []probe.Program
	Root     bool // the service runs as root
	FineIdle bool // the meters can read idle time exactly; see meter.FineIdle
	Device   Device
	// NoDevice is the reason why Device is empty: a killed run may have the device. Clean
	// returns it.
	NoDevice string
}

// Survey describes the machine.
func (s *Service) Survey(args SurveyArgs, reply *Survey) error {
	f := probe.Probe()
	*reply = Survey{Facts: *f, Lacks: map[string]string{}, Programs: f.Programs(args.Programs), Root: isRoot(), FineIdle: meter.FineIdle()}
	for _, p := range args.Programs {
		if lack := f.Lacks(p); lack != "" {
			reply.Lacks[p.Name] = lack
		}
	}
	err := s.FindDevice(args, &reply.Device)
	if err == nil {
		return nil
	}
	remains, failed := space.Homes(space.RunPrefix)
	if failed != nil || len(remains) == 0 {
		return errors.Join(err, failed)
	}
	reply.NoDevice = err.Error()
	return nil
}

// FindDevice describes the device with the data addresses.
func (s *Service) FindDevice(args SurveyArgs, reply *Device) (err error) {
	*reply, err = deviceOf(args.Data, args.Some, s.session)
	return err
}

// HoldArgs keep other measurements away from the machine.
type HoldArgs struct {
	// Machine takes the lock of the whole machine. If several hosts of a testbed are one
	// machine, only one takes it, and the others take the lock of their network namespace.
	Machine bool
}

// Hold takes a lock, which the service keeps until its end.
func (s *Service) Hold(args HoldArgs, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != nil {
		return nil
	}
	path := space.LockPath
	if !isRoot() {
		if err := s.excludeRoot(); err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		path = filepath.Join(filepath.Dir(self), lockFile) // other users cannot write there
	}
	if !args.Machine {
		own, err := space.Open("")
		if err != nil {
			return err
		}
		defer own.Close()
		inode, err := own.Inode()
		if err != nil {
			return err
		}
		path += fmt.Sprintf(".%d", inode)
	}
	var err error
	s.lock, err = space.TakeLock(path)
	return err
}

func isRoot() bool { return os.Geteuid() == 0 }

// excludeRoot takes a shared lock on root's lock file, so that no measurement of root runs at
// the same time.
func (s *Service) excludeRoot() (err error) {
	s.roots, err = os.Open(space.LockPath)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the lock file %s: %w", space.LockPath, err)
	}
	err = unix.Flock(int(s.roots.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err != nil {
		s.roots.Close()
		s.roots = nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("a measurement of root runs on this machine; wait for it, or end it")
	}
	return err
}

// Clean removes the remains of killed runs. All hosts of the testbed must be held. names
// has the names of the removed namespaces.
func (s *Service) Clean(_ struct{}, names *[]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return errors.New("remove the remains of killed runs: the machine is not held")
	}
	if !isRoot() {
		return nil // a run without root makes no namespaces
	}
	c, err := space.Clean(space.RunPrefix)
	*names = c.Namespaces
	return err
}

// PrepareArgs describe a node.
type PrepareArgs struct {
	Space     string // name of its namespace; "" for the host's namespace
	Device    Device
	Addresses []netip.Prefix // of the device in the namespace
	// Offloads are features of the device by the kernel's names. They are set only in a
	// namespace of the lab. When the device returns, its former features are restored.
	Offloads map[string]bool
	// Kept: Offloads are the features that the user requested. The device need not have
	// turned them on.
	Kept bool
}

// Prepare makes a node's namespace with the host's device in it, unless the node exists,
// and sets the device's offloads. It returns the settings. A node in the host's namespace
// needs no preparation, and the settings of its device are read.
func (s *Service) Prepare(args PrepareArgs, reply *space.Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	where, err := space.Open(args.Space)
	if args.Space != "" && (err != nil || !slices.Contains(s.nodes, args.Space)) {
		if err == nil {
			where.Close()
		}
		where, err = s.makeNode(args)
	}
	if err != nil {
		return err
	}
	defer where.Close()
	if args.Space != "" {
		set := where.Offloads
		if args.Kept {
			set = where.RestoreFeatures
		}
		if err := set(args.Device.Name, args.Offloads); err != nil {
			return err
		}
		if err := awaitCarrier(where, args.Device.Name); err != nil {
			return err
		}
	}
	return readSettings(where, args.Device.Name, reply)
}

func (s *Service) makeNode(args PrepareArgs) (_ *space.Space, err error) {
	if len(args.Device.Blocks) > 0 {
		return nil, fmt.Errorf("device %s cannot be moved to a network namespace: %s", args.Device.Name, args.Device.Blocks[0])
	}
	where, err := space.Create(args.Space)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, where.Close(), space.Delete(args.Space))
		}
	}()
	if err := where.Node(); err != nil {
		return nil, err
	}
	device := args.Device.Name
	if err := where.Borrow(device); err != nil {
		return nil, err
	}
	if err := where.DeviceSysctl("ipv6", device, "accept_ra", "0"); err != nil {
		return nil, err
	}
	if err := where.Up(device); err != nil {
		return nil, err
	}
	for _, a := range args.Addresses {
		if err := where.Connect(device, a); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(s.nodes, args.Space) {
		s.nodes = append(s.nodes, args.Space)
	}
	return where, nil
}

// Discard removes a node's namespace, and ends the processes in it.
func (s *Service) Discard(name string, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := space.Clean(name)
	if err == nil {
		s.nodes = slices.DeleteFunc(s.nodes, func(n string) bool { return n == name })
	}
	return err
}

// Remove removes the program from the machine.
func (s *Service) Remove(struct{}, *struct{}) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return removeProgram(self)
}

// removeProgram removes the program's file, all other versions of it, unfinished copies and
// lock files. It removes the directory if the lab has made it and it is empty then.
func removeProgram(self string) error {
	dir := filepath.Dir(self)
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // two hosts can be one machine
		return fmt.Errorf("list the program's directory: %w", err)
	}
	var errs []error
	made := false
	for _, f := range files {
		mark := f.Name() == MadeMark
		made = made || mark
		if !mark && !labFile.MatchString(f.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove the program from this machine: %w", err))
		}
	}
	if !made {
		return errors.Join(errs...)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, fmt.Errorf("remove the program's directory: %w", err))
	}
	return errors.Join(errs...)
}

const (
	// ProgramPrefix starts the file name of the program on a host. 16 hexadecimal digits of
	// a checksum follow.
	ProgramPrefix = "windtunnel-"
	// MadeMark is the name of a file in a directory that the lab has made.
	MadeMark = ".windtunnel"
	// lockFile is the name of an ordinary user's lock file.
	lockFile = "windtunnel.lock"
)

// labFile matches the names of the program's versions, of unfinished copies, and of lock
// files.
var labFile = regexp.MustCompile(`^(` + ProgramPrefix + `[0-9a-f]{16}(\.new\.[0-9]+)?|` + regexp.QuoteMeta(lockFile) + `(\.[0-9]+)?)$`)
