package cni

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/netspace"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// add adds a port for the container's interface and prints its addresses.
func add(args *skel.CmdArgs) error {
	r, end, err := begin(args)
	if err != nil {
		return err
	}
	defer end()
	c, err := r.config.readPort(args.StdinData, args.Args)
	if err != nil {
		return err
	}
	if err := model.CheckDevice(args.IfName); err != nil {
		return types.NewError(types.ErrInvalidEnvironmentVariables, "CNI_IFNAME", err.Error())
	}
	if err := checkNetns(args); err != nil {
		return err
	}
	port, err := r.client.AddPort(r.ctx, model.PortRequest{
		Port: model.Port{
			Name: r.port(), Network: r.config.Network, IPs: c.ips, MAC: c.mac, Policies: c.Policies,
			Bandwidth: model.Bandwidth{Ingress: model.Rate(c.Runtime.Bandwidth.Ingress), Egress: model.Rate(c.Runtime.Bandwidth.Egress)},
			Attach:    model.Attachment{Netns: args.Netns, Interface: args.IfName},
			Origin:    model.CNI, Owner: r.owner(), OfPod: r.config.pod,
		},
		From: c.pools,
	})
	if err == nil && len(c.Runtime.PortMappings) > 0 {
		if err = r.addNodePort(port.Network); err != nil {
			_, back := r.client.DeletePort(r.ctx, r.port())
			err = errors.Join(err, back)
		}
	}
	if err != nil {
		return failed("add "+args.IfName+" to network "+r.config.Network, err)
	}
	return types.PrintResult(r.result(port), r.config.CNIVersion)
}

// checkNetns refuses the namespace of this process. Package skel refuses it only after add has
// added a port.
func checkNetns(args *skel.CmdArgs) error {
	if strings.EqualFold(args.NetnsOverride, "true") || args.NetnsOverride == "1" {
		return nil
	}
	there, err := netspace.Open(args.Netns)
	if err != nil {
		return nil // the agent reports it
	}
	defer there.Close()
	own, err := netspace.Current()
	if err != nil {
		return err
	}
	defer own.Close()
	if own.Equal(there) {
		return types.NewError(types.ErrInvalidNetNS, "CNI_NETNS is the network namespace of the plugin: "+args.Netns, "")
	}
	return nil
}

// nodeOwner is the owner of ports that connect nodes to networks.
const nodeOwner = "node"

// addNodePort gives the node an address in the network. Mapped ports of
// containers need this address, since the node forwards their packets. If the node has an
// address in the network, or gets one because of node_access, addNodePort does nothing.
func (r *request) addNodePort(network string) error {
	s, err := r.client.Status(r.ctx)
	if err != nil {
		return err
	}
	networks, err := r.client.Networks(r.ctx)
	if err != nil || slices.ContainsFunc(networks, func(n model.Network) bool { return n.Name == network && n.NodeAccess }) {
		return err
	}
	ports, err := r.client.Ports(r.ctx, api.PortFilter{Network: network, Node: s.Node})
	if err != nil || slices.ContainsFunc(ports, func(p model.Port) bool { return p.Attach.Host }) {
		return err
	}
	_, err = r.client.AddPort(r.ctx, model.PortRequest{Port: model.Port{
		Name: model.NodePort(s.Node, network), Network: network, Attach: model.Attachment{Host: true},
		Origin: model.CNI, Owner: nodeOwner,
	}})
	return err
}

// result is the specification's result for a port.
func (r *request) result(p api.Port) *types100.Result {
	inside := 1
	result := &types100.Result{
		CNIVersion: types100.ImplementedSpecVersion,
		Interfaces: []*types100.Interface{
			{Name: p.Device},
			{Name: r.args.IfName, Mac: p.MAC.String(), Mtu: p.MTU, Sandbox: r.args.Netns},
		},
		DNS: r.config.DNS,
	}
	for _, prefix := range p.Prefixes {
		ip := &types100.IPConfig{Interface: &inside, Address: net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}}
		for _, g := range p.Gateways {
			if g.Is4() == prefix.Addr().Is4() {
				ip.Gateway = g.AsSlice()
			}
		}
		result.IPs = append(result.IPs, ip)
	}
	for _, g := range p.Gateways {
		result.Routes = append(result.Routes, &types.Route{Dst: net.IPNet{IP: make(net.IP, g.BitLen()/8), Mask: net.CIDRMask(0, g.BitLen())}, GW: g.AsSlice()})
	}
	return result
}

// del deletes the port. A missing port is not an error.
func del(args *skel.CmdArgs) error {
	r, end, err := begin(args)
	if err != nil {
		return err
	}
	defer end()
	return failed("delete "+args.IfName, r.client.EnsureNoPort(r.ctx, r.port()))
}

// check checks that the port is connected, and that the interface has the port's
// addresses.
func check(args *skel.CmdArgs) error {
	r, end, err := begin(args)
	if err != nil {
		return err
	}
	defer end()
	if _, err := r.config.readArgs(args.Args); err != nil {
		return err
	}
	port, err := r.client.Port(r.ctx, r.port())
	if err != nil {
		return failed("check "+args.IfName, err)
	}
	var wrong []error
	if port.Device == "" {
		wrong = append(wrong, fmt.Errorf("port %s is not connected; see `vrouter status`", port.Name))
	}
	if port.Network != r.config.Network && (r.config.pod == nil || r.config.pod.Namespace == "") { // else the namespace may choose the network
		wrong = append(wrong, fmt.Errorf("port %s is in network %s, not %s", port.Name, port.Network, r.config.Network))
	}
	wrong = append(wrong, r.differences(port)...)
	wrong = append(wrong, inside(args.Netns, args.IfName, port)...)
	return failed("check "+args.IfName, errors.Join(wrong...))
}

// differences compares the port with the result of add.
func (r *request) differences(p api.Port) (wrong []error) {
	if r.config.RawPrevResult == nil {
		return []error{errors.New("prevResult is missing from the configuration")}
	}
	err := version.ParsePrevResult(&r.config.PluginConf)
	if err != nil {
		return []error{fmt.Errorf("parse prevResult: %w", err)}
	}
	result, err := types100.NewResultFromResult(r.config.PrevResult)
	if err != nil {
		return []error{fmt.Errorf("parse prevResult: %w", err)}
	}
	for _, ip := range result.IPs {
		a, _ := netip.AddrFromSlice(ip.Address.IP)
		if !slices.Contains(p.IPs, a.Unmap()) {
			wrong = append(wrong, fmt.Errorf("port %s no longer has address %s", p.Name, a))
		}
	}
	return wrong
}

// inside checks the container's device.
func inside(path, device string, p api.Port) (wrong []error) {
	ns, err := netspace.Open(path)
	if err != nil {
		return []error{fmt.Errorf("open network namespace %s: %w", path, err)}
	}
	defer ns.Close()
	h, err := netspace.Links(ns)
	if err != nil {
		return []error{fmt.Errorf("enter network namespace %s: %w", path, err)}
	}
	defer h.Close()
	l, err := h.LinkByName(device)
	if err != nil {
		return []error{fmt.Errorf("find device %s in %s: %w", device, path, err)}
	}
	if l.Attrs().Flags&net.FlagUp == 0 {
		wrong = append(wrong, fmt.Errorf("device %s in %s is down", device, path))
	}
	if l.Attrs().HardwareAddr.String() != p.MAC.String() {
		wrong = append(wrong, fmt.Errorf("device %s in %s has MAC %s, not %s", device, path, l.Attrs().HardwareAddr, p.MAC))
	}
	addresses, err := h.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return append(wrong, err)
	}
	for _, ip := range p.IPs {
		if !slices.ContainsFunc(addresses, func(a netlink.Addr) bool { return a.IP.Equal(ip.AsSlice()) }) {
			wrong = append(wrong, fmt.Errorf("device %s in %s lacks address %s", device, path, ip))
		}
	}
	return wrong
}

// status reports whether containers can be added.
func status(args *skel.CmdArgs) error {
	r, end, err := begin(args)
	if err != nil {
		return types.NewError(codeUnavailable, "vrouter cannot serve containers", err.Error())
	}
	defer end()
	if _, err := r.config.readPort(args.StdinData, args.Args); err != nil {
		return types.NewError(codeUnavailable, "vrouter cannot serve containers", err.Error())
	}
	s, err := r.client.Status(r.ctx)
	if err != nil {
		return types.NewError(codeUnavailable, "the vrouter agent does not answer", err.Error())
	}
	if s.Store.Problem != "" {
		return types.NewError(codeUnavailable, "the fleet's store is unreachable: no address can be allocated", s.Store.Problem)
	}
	networks, err := r.client.Networks(r.ctx)
	if err != nil {
		return types.NewError(codeUnavailable, "the vrouter agent does not answer", err.Error())
	}
	if !slices.ContainsFunc(networks, func(n model.Network) bool { return n.Name == r.config.Network }) {
		return types.NewError(codeUnavailable, "there is no network "+r.config.Network, "create it with `vrouter network create`")
	}
	return nil
}

// gc deletes this configuration's ports on this node whose containers the runtime
// no longer has.
func gc(args *skel.CmdArgs) error {
	r, end, err := begin(args)
	if err != nil {
		return err
	}
	defer end()
	valid := map[string]bool{}
	for _, a := range r.config.ValidAttachments {
		valid[ownerOf(r.config.Name, a.ContainerID, a.IfName)] = true
	}
	s, err := r.client.Status(r.ctx)
	if err != nil {
		return failed("garbage collection on this node", err)
	}
	ports, err := r.client.Ports(r.ctx, api.PortFilter{Node: s.Node, Origin: model.CNI})
	if err != nil {
		return failed("garbage collection on this node", err)
	}
	var errs []error
	needed := map[string]bool{} // networks in which containers need the node's port
	for _, p := range ports {
		if valid[p.Owner] || !strings.HasPrefix(p.Owner, r.config.Name+"/") {
			needed[p.Network] = needed[p.Network] || p.Owner != nodeOwner
			continue
		}
		errs = append(errs, r.client.EnsureNoPort(r.ctx, p.Name))
	}
	for _, p := range ports {
		if p.Owner == nodeOwner && !needed[p.Network] {
			errs = append(errs, r.client.EnsureNoPort(r.ctx, p.Name))
		}
	}
	return failed("garbage collection on this node", errors.Join(errs...))
}
