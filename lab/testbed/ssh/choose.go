package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/sample"
)

// First removes all hosts but the first n.
func (h *Hosts) First(n int) { h.Hosts = h.Hosts[:min(n, len(h.Hosts))] }

// Only removes all other hosts. It is an error if a host is not in the file.
func (h *Hosts) Only(names []string) error {
	for _, name := range names {
		if !slices.Contains(h.Names(), name) {
			return fmt.Errorf("the run needs host %s, which the hosts file does not have; add it to the file", name)
		}
	}
	h.Hosts = slices.DeleteFunc(h.Hosts, func(host Host) bool { return !slices.Contains(names, host.Name) })
	return nil
}

// Record describes the hosts for the record of a run.
func (h *Hosts) Record() (list []sample.Host) {
	for i := range h.Hosts {
		list = append(list, h.Hosts[i].record())
	}
	return list
}

func (h *Host) record() sample.Host {
	r := sample.Host{Name: h.Name, Address: net.JoinHostPort(strings.Trim(h.Address, "[]"), strconv.Itoa(cmp.Or(h.Port, 22))), Data: h.data[0].String(), Zone: h.Zone, Price: h.price}
	if len(h.data) > 1 {
		r.Data6 = h.data[1].String()
	}
	return r
}

// Resume keeps the hosts of a run's record, in the order of the record. It returns the names of
// the hosts that are not in the file. It is an error if a host has other addresses now, because
// another machine may be there.
func (h *Hosts) Resume(recorded []sample.Host) (missing []string, err error) {
	var kept []Host
	for _, want := range recorded {
		i := slices.IndexFunc(h.Hosts, func(host Host) bool { return host.Name == want.Name })
		if i < 0 {
			missing = append(missing, want.Name)
			continue
		}
		if now := h.Hosts[i].record(); now.String() != want.String() {
			err = errors.Join(err, fmt.Errorf("host %s: the hosts file has %s, and the run used %s; restore the addresses, or start a new run", want.Name, now, want))
		}
		kept = append(kept, h.Hosts[i])
	}
	h.Hosts = kept
	return missing, err
}
