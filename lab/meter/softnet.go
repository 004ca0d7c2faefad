package meter

import "fmt"

// readSoftnet reads how many buffers each of the node's CPUs processed in the
// receive path of all namespaces (softnet_seq_show, net/core/net-procfs.c). Kernels
// before 5.14 do not print the CPU number. The line number then replaces it, which
// is correct if every CPU is online.
func (m *Meter) readSoftnet(r *Reading) error {
	stats, err := m.proc.NetSoftnetStat()
	if err != nil {
		return fmt.Errorf("read packets by CPU: %w", err)
	}
	r.Softnet = make(map[int]uint64, len(m.config.CPUs))
	for _, s := range stats {
		if _, ok := m.slot[int(s.Index)]; ok {
			r.Softnet[int(s.Index)] = uint64(s.Processed)
		}
	}
	return nil
}
