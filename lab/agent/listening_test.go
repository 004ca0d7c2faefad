package agent

import "testing"

// Captured from a machine with a listener on 5001, one on 22, and a connection
// to port 443.
const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 30017 1 0000000000000000 100 0 0 10 0
   1: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21377 1 0000000000000000 100 0 0 10 0
   2: 0A00020F:8B2E 5DB8D822:01BB 01 00000000:00000000 02:0000045B 00000000  1000        0 31222 2 0000000000000000 20 4 30 10 -1
`

const udpTable = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  109: 00000000:1389 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 30911 2 0000000000000000 0
`

func TestOnlyAListeningSocketCountsAsReady(t *testing.T) {
	for _, c := range []struct {
		table string
		port  uint16
		udp   bool
		want  bool
	}{
		{tcpTable, 5001, false, true},
		{tcpTable, 22, false, true},
		{tcpTable, 35630, false, false}, // connected, not listening
		{tcpTable, 443, false, false},   // a remote port
		{tcpTable, 5002, false, false},
		{udpTable, 5001, true, true},
		{udpTable, 5001, false, false},
		{"", 5001, false, false},
		{"garbage\n\n: : :\n", 5001, false, false},
	} {
		if got := tableHasPort([]byte(c.table), c.port, c.udp); got != c.want {
			t.Errorf("port %d (UDP %v) in %.40q…: %v, want %v", c.port, c.udp, c.table, got, c.want)
		}
	}
}

func FuzzTableHasPort(f *testing.F) {
	f.Add([]byte(tcpTable), uint16(5001), false)
	f.Add([]byte(udpTable), uint16(5001), true)
	f.Fuzz(func(t *testing.T, table []byte, port uint16, udp bool) {
		tableHasPort(table, port, udp)
	})
}
