package probe

import "strings"

// traces are signs of the hypervisor or container in which the machine runs. All fields can
// be empty.
type traces struct {
	hypervisorFlag bool   // of the CPU
	vendor         string // /sys/class/dmi/id/sys_vendor
	product        string // /sys/class/dmi/id/product_name
	bios           string // /sys/class/dmi/id/bios_vendor
	hypervisor     string // /sys/hypervisor/type
	clocks         string // available clock sources
	container      string // /run/systemd/container, or the engine whose mark was found
}

// names maps DMI's texts to the names of systemd-detect-virt(1).
var dmiNames = []struct{ part, name string }{
	{"kvm", "kvm"}, {"firecracker", "firecracker"}, {"amazon ec2", "amazon"}, {"qemu", "qemu"}, {"vmware", "vmware"}, {"vmw", "vmware"},
	{"innotek gmbh", "oracle"}, {"virtualbox", "oracle"}, {"xen", "xen"}, {"bochs", "bochs"}, {"parallels", "parallels"}, {"bhyve", "bhyve"},
	{"hyper-v", "microsoft"}, {"apple virtualization", "apple"}, {"google compute engine", "google"}, {"openstack", "kvm"},
}

// virtualization returns the name of the hypervisor, "none", or "vm" for a virtual CPU of an
// unknown hypervisor. In a container the container's name follows.
func (t traces) virtualization() string {
	vm := t.machine()
	if t.container == "" {
		return vm
	}
	if vm == "none" {
		return "container " + t.container
	}
	return vm + ", container " + t.container
}

func (t traces) machine() string {
	dmi := strings.ToLower(t.vendor + "\n" + t.product + "\n" + t.bios)
	for _, n := range dmiNames {
		if strings.Contains(dmi, n.part) {
			return n.name
		}
	}
	if strings.Contains(dmi, "microsoft corporation") && strings.Contains(dmi, "virtual machine") {
		return "microsoft"
	}
	if t.hypervisor != "" {
		return t.hypervisor
	}
	// A guest's kernel offers the clock of the hypervisor that it found.
	for _, c := range []struct{ clock, name string }{{"kvm-clock", "kvm"}, {"hyperv_clocksource", "microsoft"}, {"xen", "xen"}} {
		if strings.Contains(t.clocks, c.clock) {
			return c.name
		}
	}
	if t.hypervisorFlag {
		return "vm"
	}
	return "none"
}
