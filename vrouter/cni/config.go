package cni

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"windtunnel/vrouter/model"
)

// config is the plugin's part of a network configuration.
//
//	{"type": "vrouter", "network": "red"}
//
// The runtime's values (runtimeConfig, CNI_ARGS) override those of the
// configuration file.
type config struct {
	types.PluginConf
	Network  string   `json:"network"`  // name of the virtual network; default: the configuration's name
	Policies []string `json:"policies"` // checked before the network's
	Ranges   []string `json:"ranges"`   // from which addresses are allocated
	Node     string   `json:"node"`     // name of the agent's node; default: the only agent on the host
	Socket   string   `json:"socket"`   // socket of the agent; default /run/vrouter/NODE.sock

	Runtime struct {
		IPs []string `json:"ips"`
		MAC string   `json:"mac"`
		// Bandwidth is in bit/s. The specification's bursts are ignored.
		Bandwidth struct {
			Ingress uint64 `json:"ingressRate"`
			Egress  uint64 `json:"egressRate"`
		} `json:"bandwidth"`
		PortMappings []json.RawMessage `json:"portMappings"` // a later plugin of the chain applies them
	} `json:"runtimeConfig"`
	Args struct {
		CNI struct {
			IPs []string `json:"ips"`
		} `json:"cni"`
	} `json:"args"`

	ips   []netip.Addr
	mac   model.MAC
	pools []model.Range
	pod   *model.Pod // nil: the runtime named none
}

// environment holds the keys of CNI_ARGS that the plugin uses.
type environment struct {
	types.CommonArgs
	IP                types.UnmarshallableString
	MAC               types.UnmarshallableString
	K8S_POD_NAMESPACE types.UnmarshallableString
	K8S_POD_NAME      types.UnmarshallableString
	K8S_POD_UID       types.UnmarshallableString
}

// readConfig parses and checks a configuration. Errors name the field.
func readConfig(text []byte, args string) (config, error) {
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return c, types.NewError(types.ErrDecodingFailure, "parse the network configuration", err.Error())
	}
	invalid := func(field string, format string, a ...any) (config, error) {
		return c, types.NewError(types.ErrInvalidNetworkConfig, "the network configuration is invalid", field+": "+fmt.Sprintf(format, a...))
	}
	var env environment
	if args != "" {
		env.IgnoreUnknown = true
		if err := types.LoadArgs(args, &env); err != nil {
			return c, types.NewError(types.ErrInvalidEnvironmentVariables, "parse CNI_ARGS", err.Error())
		}
	}
	if pod := (model.Pod{Namespace: string(env.K8S_POD_NAMESPACE), Name: string(env.K8S_POD_NAME), UID: string(env.K8S_POD_UID)}); pod != (model.Pod{}) {
		c.pod = &pod
	}
	if c.Network = cmp.Or(c.Network, c.Name); c.Network == "" {
		return invalid("network", "is missing; write the name of a virtual network")
	}
	if c.IPAM.Type != "" {
		return invalid("ipam", "%q: vrouter allocates the addresses of its networks; remove ipam", c.IPAM.Type)
	}
	if c.Socket != "" && !filepath.IsAbs(c.Socket) {
		return invalid("socket", "%q is not an absolute path", c.Socket)
	}
	for _, text := range c.Ranges {
		r, err := model.ParseRange(text)
		if err != nil {
			return invalid("ranges", "%v", err)
		}
		c.pools = append(c.pools, r)
	}
	wanted := c.Runtime.IPs
	if len(wanted) == 0 {
		wanted = c.Args.CNI.IPs
	}
	if len(wanted) == 0 && env.IP != "" {
		wanted = strings.Split(string(env.IP), ",")
	}
	for _, text := range wanted {
		a, err := address(text)
		if err != nil {
			return invalid("ips", "%v", err)
		}
		c.ips = append(c.ips, a)
	}
	if mac := cmp.Or(c.Runtime.MAC, string(env.MAC)); mac != "" {
		var err error
		if c.mac, err = model.ParseMAC(mac); err != nil {
			return invalid("mac", "%v", err)
		}
	}
	return c, nil
}

// address parses an address with or without a prefix length. Runtimes use both
// forms.
func address(text string) (netip.Addr, error) {
	text = strings.TrimSpace(text)
	a, err := netip.ParseAddr(text)
	if p, isPrefix := netip.ParsePrefix(text); isPrefix == nil {
		a, err = p.Addr(), nil
	}
	if err != nil || a.Zone() != "" {
		return a, fmt.Errorf("%q is not an IP address", text)
	}
	return a.Unmap(), nil
}
