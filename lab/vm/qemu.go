// Package vm runs virtual machines as endpoints: QEMU with one virtio network
// device on a tap of the node, without a disk. The guest boots a stock kernel
// and a file system in memory whose init is this program (package guest), and
// is reached over a virtio-serial port.
package vm

import (
	"fmt"
	"net"
	"strconv"
)

// Program is the emulator.
const Program = "qemu-system-x86_64"

// InitCommand is the argument that makes this program a guest's init.
const InitCommand = "guest-init"

// PortName is the name of the agent's virtio-serial port in the guest.
const PortName = "windtunnel.agent"

// Accelerator runs a guest's CPUs.
type Accelerator string

const (
	KVM Accelerator = "kvm" // on the CPU itself
	TCG Accelerator = "tcg" // emulated: the guest's code is translated, an order of magnitude slower
)

// Config describes a VM to start.
type Config struct {
	Name        string // of its files
	CPUs        int
	Memory      int64 // bytes
	Kernel      string
	Image       string // initramfs
	Tap         string // device of the node that it is joined to
	Queues      int    // of the tap and the network device, each way
	MAC         net.HardwareAddr
	Accelerator Accelerator
	VHost       bool // the kernel moves packets between tap and guest, not QEMU
}

// paths of the sockets and of the log that QEMU makes.
type paths struct{ agent, qmp, console string }

// kernelLine is the guest's command line. The console goes to the log. A guest that panics
// ends QEMU, so that the lab notices. The file system may use all of the memory; tmpfs would
// stop at half. Options that only cost time at boot are off. So are mitigations, because an
// emulated CPU does not have the vulnerabilities.
func kernelLine(a Accelerator) string {
	line := "console=ttyS0 quiet panic=-1 reboot=t rootfstype=ramfs rdinit=/init no_timer_check tsc=reliable random.trust_cpu=on edd=off pci=noaer net.ifnames=0"
	if a == TCG {
		line += " mitigations=off"
	}
	return line + " -- " + InitCommand
}

// argv returns QEMU's command line.
func argv(c Config, p paths) []string {
	cpu, accel := "host", "kvm"
	if c.Accelerator == TCG {
		cpu, accel = "max", "tcg,thread=multi"
	}
	// Without a display the firmware does not use the serial port, where it would
	// cost time and write control sequences.
	network := fmt.Sprintf("tap,id=net0,ifname=%s,script=no,downscript=no,vnet_hdr=on", c.Tap)
	device := fmt.Sprintf("virtio-net-pci,netdev=net0,mac=%s,romfile=", c.MAC)
	if c.Queues > 1 { // a vector for each queue each way, one for changes, one for control
		network += ",queues=" + strconv.Itoa(c.Queues)
		device += ",mq=on,vectors=" + strconv.Itoa(2*c.Queues+2)
	}
	if c.VHost {
		network += ",vhost=on"
	}
	return []string{Program,
		"-name", c.Name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35,usb=off,vmport=off,smm=off,hpet=off", "-accel", accel, "-cpu", cpu,
		"-smp", strconv.Itoa(c.CPUs), "-m", fmt.Sprintf("%dk", c.Memory>>10),
		"-kernel", c.Kernel, "-initrd", c.Image, "-append", kernelLine(c.Accelerator),
		"-chardev", "file,id=console,path=" + p.console, "-serial", "chardev:console",
		"-chardev", "socket,id=qmp,server=on,wait=off,path=" + p.qmp, "-mon", "chardev=qmp,mode=control",
		"-netdev", network, "-device", device,
		"-device", "virtio-serial-pci", "-chardev", "socket,id=agent,server=on,wait=off,path=" + p.agent,
		"-device", "virtserialport,chardev=agent,name=" + PortName,
	}
}
