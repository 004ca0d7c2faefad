package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// product is a program with its package and its image.
type product struct {
	name        string
	description string   // of the Debian package: one line, then paragraphs
	recommends  []string // Debian packages
	suggests    []string
	notices     []string // files with licences of parts that are no Go modules, below the repository
	files       []file   // besides the program and its documents; paths below the repository
	plugin      string   // a second program, with the same modules; "": there is none
	helper      string   // import path of a program of another module, which only the image has; "": there is none
	scripts     string   // folder of the package's postinst, prerm and postrm, below the repository
}

// file is a file of a package.
type file struct {
	from string // the file with the content; of a link: where it leads
	to   string // absolute path where it is installed
	mode fs.FileMode
	kind kind
}

// kind of a file in a package.
type kind int

const (
	plain kind = iota
	imageOnly
	conffile
	link
)

var products = []product{
	{
		name: "windtunnel",
		description: `measures what a virtual network costs
Windtunnel builds compute nodes and a fabric on one Linux machine, or uses
hosts that it reaches by SSH, and connects two workloads by a network under
test. It runs real traffic tools, measures the CPU of each side separately,
and reports the cost relative to a baseline, with a confidence interval.

"windtunnel doctor" lists the tools and systems that a machine lacks.`,
		recommends: []string{"fio", "iperf3", "qperf", "sockperf", "vrouter"},
		suggests: []string{"busybox-static", "containerd", "docker.io", "etcd-server", "frr", "iptables", "netperf",
			"openvswitch-switch", "qemu-system-x86", "runc", "wireguard-go", "wireguard-tools"},
		notices: []string{
			"lab/report/html/assets/LICENSE.echarts", "lab/report/html/assets/NOTICE.echarts",
			"lab/report/html/assets/LICENSE.zrender", "lab/report/html/assets/LICENSE.tslib",
		},
	},
	{
		name: "vrouter",
		description: `virtual router for overlay networks, in eBPF
vrouter connects workloads of virtual networks over an IP underlay: directly
between nodes of one link, else by VXLAN, MPLS over UDP or MPLS over GRE. The
package contains the agent of a node, the CNI plugin, and Docker's network and
address plugin.

The installation starts nothing. Removing the package does not remove a
node's networks from the kernel: run "vrouter remove" before.`,
		suggests: []string{"containernetworking-plugins", "docker.io", "etcd-server"},
		files: []file{
			{"dist/vrouter/node.yaml", "/etc/vrouter/node.yaml", 0o644, conffile},
			{"dist/systemd/vrouter.service", "/usr/lib/systemd/system/vrouter.service", 0o644, plain},
			{"dist/systemd/vrouter-docker.service", "/usr/lib/systemd/system/vrouter-docker.service", 0o644, plain},
			{"dist/systemd/vrouter-docker.socket", "/usr/lib/systemd/system/vrouter-docker.socket", 0o644, plain},
			// The folders of CNI plugins: of upstream's runtimes, and of Debian's.
			{"/usr/bin/vrouter-cni", "/opt/cni/bin/vrouter", 0o777, link},
			{"../../bin/vrouter-cni", "/usr/lib/cni/vrouter", 0o777, link},
		},
		plugin:  "vrouter-cni",
		helper:  "github.com/containernetworking/plugins/plugins/meta/portmap",
		scripts: "dist/vrouter",
	},
}

// contents returns the files of a product's package.
func (r *release) contents(p product, b binary) ([]file, error) {
	copyright := filepath.Join(r.stage, b.arch, p.name+".copyright")
	text, err := r.copyright(p, b)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(copyright, text, 0o644); err != nil {
		return nil, err
	}
	all := []file{
		{b.path, "/usr/bin/" + p.name, 0o755, plain},
		{copyright, fmt.Sprintf("/usr/share/doc/%s/copyright", p.name), 0o644, plain},
	}
	if p.plugin != "" {
		all = append(all, file{r.program(p.plugin, b.arch), "/usr/bin/" + p.plugin, 0o755, plain})
	}
	if p.helper != "" {
		name := path.Base(p.helper)
		all = append(all, file{r.program(name, b.arch), "/usr/bin/" + p.name + "-" + name, 0o755, imageOnly})
	}
	for _, f := range p.files {
		if f.kind != link {
			f.from = filepath.Join(r.tree, f.from)
		}
		all = append(all, f)
	}
	return append(all, r.papers[p.name]...), nil
}
