// Package guest is the init of a virtual machine that is an endpoint. It sets up the machine
// and serves the lab's agent on a virtio-serial port.
package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/vm"
	"windtunnel/lab/vm/image"
)

// Command is the argument with which the program runs as a guest's init.
const Command = vm.InitCommand

// Serve answers an agent's calls on a port until its other end closes; it is
// agent.Serve with a version.
type Serve func(port *os.File) error

// Main runs the guest and never returns: init must not end. It prints errors to
// the console, which the node keeps.
func Main(serve Serve) {
	if err := run(serve); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintln(os.Stderr, "guest: power off:", err)
	}
	select {}
}

// run returns when the node has closed the port.
func run(serve Serve) error {
	if os.Getpid() != 1 {
		return errors.New("this is the init of a virtual machine, which the lab starts by itself")
	}
	if err := mountAll(); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	if err := errors.Join(os.Setenv("PATH", image.Programs), os.Setenv("HOME", "/root"), unix.Sethostname([]byte("guest"))); err != nil {
		return err
	}
	port, err := findPort(10 * time.Second)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "guest: ready after %.2f s\n", sinceBoot())
	return serve(port)
}

func sinceBoot() float64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // 0 is shown where there is none
	return time.Duration(ts.Nano()).Seconds()
}

// mountAll mounts the file systems that programs expect.
func mountAll() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/dev/shm"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		err := unix.Mount(m.kind, m.at, m.kind, 0, "")
		if err != nil && !errors.Is(err, unix.EBUSY) { // a kernel may mount /dev by itself
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// loadModules loads the image's modules in their order.
func loadModules() error {
	order, err := os.ReadFile(image.ModuleOrder)
	if err != nil {
		return fmt.Errorf("list the modules: %w", err)
	}
	for name := range strings.FieldsSeq(string(order)) {
		if err := load(filepath.Join(image.Modules, name)); err != nil {
			return fmt.Errorf("load module %s: %w", name, err)
		}
	}
	return nil
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// findPort waits for the agent's port and opens it. The kernel names ports by
// their numbers, and shows QEMU's names in sysfs (drivers/char/virtio_console.c).
func findPort(wait time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, path := range names {
			text, err := os.ReadFile(path)
			if err != nil || strings.TrimSpace(string(text)) != vm.PortName {
				continue
			}
			device := filepath.Join("/dev", filepath.Base(filepath.Dir(path)))
			f, err := os.OpenFile(device, os.O_RDWR|unix.O_NONBLOCK, 0)
			if err == nil {
				return f, nil
			}
			if time.Now().After(deadline) {
				return nil, fmt.Errorf("open the agent's port: %w", err)
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the machine has no virtio-serial port %s", vm.PortName)
		}
	}
}
