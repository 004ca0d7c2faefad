package ssh

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/probe"
	"windtunnel/lab/sample"
)

// Hosts is the content of a hosts file.
type Hosts struct {
	// Dedicated reports that the data devices carry nothing else. The lab may then move
	// them to network namespaces.
	Dedicated  bool   `yaml:"dedicated"`
	KnownHosts string `yaml:"known_hosts"` // file; default: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
	Hosts      []Host `yaml:"hosts"`
}

// Host is a machine that is reached by SSH.
type Host struct {
	Name      string   `yaml:"name"`
	Address   string   `yaml:"address"` // name or IP address for SSH, or a name of ~/.ssh/config
	Port      int      `yaml:"port"`    // default: that of ssh, like all that follow
	User      string   `yaml:"user"`
	Key       string   `yaml:"key"`   // file of the private key
	Jump      []string `yaml:"jump"`  // hosts to connect through, in order: [user@]address[:port]
	Sudo      bool     `yaml:"sudo"`  // run the agent by `sudo -n`
	CPUs      string   `yaml:"cpus"`  // list; default: all that a process of the user may use
	Data      string   `yaml:"data"`  // IPv4 address of the device that carries the traffic
	Data6     string   `yaml:"data6"` // IPv6 address of the same device
	Directory string   `yaml:"directory"`
	Zone      string   `yaml:"zone"`  // where the host is
	Price     string   `yaml:"price"` // such as "0.12 USD/h"

	cpus       []int
	price      sample.Price
	data       []netip.Addr
	knownHosts string
}

// mostHosts is the maximum number of hosts. Each has a connection to the engine.
const mostHosts = 1000

// check checks the hosts and completes them.
func (h *Hosts) check() error {
	if n := len(h.Hosts); n < 2 || n > mostHosts {
		return fmt.Errorf("the file has %d hosts; list 2 to %d hosts below `hosts:`", n, mostHosts)
	}
	names, owners, currency := map[string]bool{}, map[netip.Addr]string{}, ""
	for i := range h.Hosts {
		host := &h.Hosts[i]
		if err := host.check(); err != nil {
			return fmt.Errorf("host %d (%s): %w", i+1, host.Name, err)
		}
		if names[host.Name] {
			return fmt.Errorf("two hosts have the name %s; give each host a different name", host.Name)
		}
		for _, a := range host.data {
			if owners[a] != "" {
				return fmt.Errorf("the hosts %s and %s have the data address %s; give the address of each host's own device", owners[a], host.Name, a)
			}
			owners[a] = host.Name
		}
		if c := host.price.Currency; c != "" {
			if currency = cmp.Or(currency, c); c != currency {
				return fmt.Errorf("host %d (%s): the price is in %s, but the price of a host above is in %s; give all prices in the same currency", i+1, host.Name, c, currency)
			}
		}
		names[host.Name] = true
		host.knownHosts = h.KnownHosts
	}
	return nil
}

// Names lists the names of the hosts.
func (h *Hosts) Names() (names []string) {
	for i := range h.Hosts {
		names = append(names, h.Hosts[i].Name)
	}
	return names
}

var (
	validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)
	validUser = regexp.MustCompile(`^[^\s:/]+$`) // of SSH: also user@realm and DOMAIN\user
)

func (h *Host) check() error {
	if !validName.MatchString(h.Name) {
		return fmt.Errorf("%q is not a name; use letters, digits, dots, hyphens and underscores", h.Name)
	}
	if h.Address == "" {
		h.Address = h.Name
	}
	if err := h.checkAddress(); err != nil {
		return err
	}
	if h.Port < 0 || h.Port > 65535 {
		return fmt.Errorf("%d is not a port", h.Port)
	}
	if h.User != "" && !validUser.MatchString(h.User) {
		return fmt.Errorf("user %q contains a space, a colon or a slash; write the login name only", h.User)
	}
	if h.CPUs != "" {
		var err error
		if h.cpus, err = probe.ParseCPUList(h.CPUs); err != nil || len(h.cpus) == 0 {
			return fmt.Errorf("cpus is %q; write a list of CPUs, such as 0-3,8", h.CPUs)
		}
	}
	if err := h.checkData(); err != nil {
		return err
	}
	if h.Directory != "" && !filepath.IsAbs(h.Directory) {
		return fmt.Errorf("directory %q is not absolute", h.Directory)
	}
	if err := h.checkPrice(); err != nil {
		return err
	}
	return h.checkDestination()
}

// checkAddress reports an address with a user or a port, which have their own keys.
func (h *Host) checkAddress() error {
	rest := strings.TrimSuffix(strings.TrimPrefix(h.Address, "ssh://"), "/")
	user, address := cutUser(rest)
	port := ""
	if host, p, err := net.SplitHostPort(address); err == nil {
		address, port = host, p
	}
	if address == h.Address {
		return nil
	}
	keys := []string{fmt.Sprintf("`address: %q`", strings.Trim(address, "[]"))}
	if user != "" {
		keys = append(keys, fmt.Sprintf("`user: %q`", user))
	}
	if port != "" {
		keys = append(keys, fmt.Sprintf("`port: %s`", port))
	}
	return fmt.Errorf("address %q is not only a host; write %s", h.Address, phrase.And(keys))
}

// cutUser splits [user@]address. A user may contain "@", as in user@realm.
func cutUser(text string) (user, address string) {
	i := strings.LastIndex(text, "@")
	return text[:max(i, 0)], text[i+1:]
}

var priceForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ([A-Z]{3})/h$`)

// checkPrice reads the price.
func (h *Host) checkPrice() error {
	if h.Price == "" {
		return nil
	}
	parts := priceForm.FindStringSubmatch(h.Price)
	if parts == nil {
		return fmt.Errorf("price: %q is not a price such as 0.12 USD/h", h.Price)
	}
	perHour, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return fmt.Errorf("price: %w", err)
	}
	h.price = sample.Price{PerHour: perHour, Currency: parts[2]}
	return nil
}

// checkData reads the data addresses.
func (h *Host) checkData() error {
	for i, text := range []string{h.Data, h.Data6} {
		if text == "" && i == 1 {
			continue
		}
		key := [...]string{"data", "data6"}[i]
		a, err := netip.ParseAddr(text)
		if err != nil || a.Is4() != (i == 0) || a.Is4In6() {
			return fmt.Errorf("%s: %q is not an IPv%d address; give the address of the device that carries the traffic, without a prefix length", key, text, [...]int{4, 6}[i])
		}
		if linkLocal4 := a.Is4() && a.IsLinkLocalUnicast(); !a.IsGlobalUnicast() && !linkLocal4 {
			return fmt.Errorf("%s: other hosts cannot send to %s; give a unicast address of the device that carries the traffic", key, a)
		}
		h.data = append(h.data, a)
	}
	return nil
}
