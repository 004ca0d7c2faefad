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
	Network string `json:"network"` // name of the virtual network; default: the configuration's name
	Node    string `json:"node"`    // name of the agent's node; default: the only agent on the host
	Socket  string `json:"socket"`  // socket of the agent; default /run/vrouter/NODE.sock

	pod *model.Pod // nil: CNI_ARGS has none, or the verb does not read CNI_ARGS
}

// portConfig has the settings of a CNI network configuration that describe its ports. Only the verbs ADD and STATUS read
// them: a wrong value must not prevent DEL from deleting a port.
type portConfig struct {
	Policies []string `json:"policies"` // checked before the network's
	Ranges   []string `json:"ranges"`   // from which addresses are allocated

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

// readConfig parses and checks the part of a configuration that all verbs use. Errors name the field.
func readConfig(text []byte) (c config, err error) {
	if err := json.Unmarshal(text, &c); err != nil {
		return c, types.NewError(types.ErrDecodingFailure, "parse the network configuration", err.Error())
	}
	c.Network = cmp.Or(c.Network, c.Name)
	if c.Socket != "" && !filepath.IsAbs(c.Socket) {
		return c, invalid("socket", "%q is not an absolute path", c.Socket)
	}
	return c, nil
}

func invalid(field string, format string, a ...any) error {
	return types.NewError(types.ErrInvalidNetworkConfig, "the network configuration is invalid", field+": "+fmt.Sprintf(format, a...))
}

// readArgs parses CNI_ARGS, and sets the pod.
func (c *config) readArgs(args string) (env environment, err error) {
	if args != "" {
		env.IgnoreUnknown = true
		if err := types.LoadArgs(args, &env); err != nil {
			return env, types.NewError(types.ErrInvalidEnvironmentVariables, "parse CNI_ARGS", err.Error())
		}
	}
	if pod := (model.Pod{Namespace: string(env.K8S_POD_NAMESPACE), Name: string(env.K8S_POD_NAME), UID: string(env.K8S_POD_UID)}); pod != (model.Pod{}) {
		c.pod = &pod
	}
	return env, nil
}

// readPort parses and checks the part of a configuration that ADD uses.
func (c *config) readPort(text []byte, args string) (p portConfig, err error) {
	if err := json.Unmarshal(text, &p); err != nil {
		return p, types.NewError(types.ErrDecodingFailure, "parse the network configuration", err.Error())
	}
	env, err := c.readArgs(args)
	if err != nil {
		return p, err
	}
	if c.Network == "" {
		return p, invalid("network", "is missing; write the name of a virtual network")
	}
	if c.IPAM.Type != "" {
		return p, invalid("ipam", "%q: vrouter allocates the addresses of its networks; remove ipam", c.IPAM.Type)
	}
	for _, text := range p.Ranges {
		r, err := model.ParseRange(text)
		if err != nil {
			return p, invalid("ranges", "%v", err)
		}
		p.pools = append(p.pools, r)
	}
	wanted := p.Runtime.IPs
	if len(wanted) == 0 {
		wanted = p.Args.CNI.IPs
	}
	if len(wanted) == 0 && env.IP != "" {
		wanted = strings.Split(string(env.IP), ",")
	}
	for _, text := range wanted {
		a, err := address(text)
		if err != nil {
			return p, invalid("ips", "%v", err)
		}
		p.ips = append(p.ips, a)
	}
	if mac := cmp.Or(p.Runtime.MAC, string(env.MAC)); mac != "" {
		if p.mac, err = model.ParseMAC(mac); err != nil {
			return p, invalid("mac", "%v", err)
		}
	}
	return p, nil
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
