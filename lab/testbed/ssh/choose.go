package ssh

import (
	"fmt"
	"slices"
)

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
