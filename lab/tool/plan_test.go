package tool

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// planned is a workload and the command lines that have to come of it.
type planned struct {
	name  string
	tool  Tool
	w     suite.Workload
	argvs []string // in the order of the processes, words joined by spaces
}

var plans = []planned{
	{"iperf3 stream", Iperf3{}, liveStream(nil), []string{
		"iperf3 -s -p 5001 -B 192.0.2.2 -J -i 0.1",
		"iperf3 -c 192.0.2.2 -p 5001 -J -i 0.1 --get-server-output --connect-timeout 5000 -t 4 -P 1 -l 131072"}},
	{"iperf3 with everything", Iperf3{}, liveStream(func(w *suite.Workload) {
		w.Streams, w.NoDelay, w.Sendfile, w.SendBuffer, w.ReceiveBuffer, w.Rate = 4, true, true, 262144, 262144, 1e9
		w.Direction, w.IPVersion = suite.Both, 6
	}), []string{
		"iperf3 -s -p 5001 -B 2001:db8::2 -J -i 0.1",
		"iperf3 -c 2001:db8::2 -p 5001 -J -i 0.1 --get-server-output --connect-timeout 5000 -t 4 -P 4 -6 -l 131072 --fq-rate 250000000 -w 262144 -N -Z --bidir"}},
	{"iperf3 UDP unlimited", Iperf3{}, liveDatagrams(0, nil), []string{
		"iperf3 -s -p 5001 -B 192.0.2.2 -J -i 0.1",
		"iperf3 -c 192.0.2.2 -p 5001 -J -i 0.1 --get-server-output --connect-timeout 5000 -t 4 -P 1 -l 1400 -u -b 0"}},
	{"iperf3 UDP reverse shares the rate", Iperf3{}, liveDatagrams(1e9, func(w *suite.Workload) { w.Streams, w.Direction = 3, suite.Reverse }), []string{
		"iperf3 -s -p 5001 -B 192.0.2.2 -J -i 0.1",
		"iperf3 -c 192.0.2.2 -p 5001 -J -i 0.1 --get-server-output --connect-timeout 5000 -t 4 -P 3 -l 1400 -u -b 333333333 -R"}},
	{"iperf3 with a DSCP", Iperf3{}, liveDatagrams(0, func(w *suite.Workload) { w.DSCP = 46 }), []string{
		"iperf3 -s -p 5001 -B 192.0.2.2 -J -i 0.1",
		"iperf3 -c 192.0.2.2 -p 5001 -J -i 0.1 --get-server-output --connect-timeout 5000 -t 4 -P 1 -l 1400 -u -b 0 -S 184"}},
	{"netperf with a DSCP", Netperf{}, change(liveRR(suite.TCPCRR, 64, 6), func(w *suite.Workload) { w.DSCP = 8 }), []string{
		"netserver -D -N -p 5001 -L 2001:db8::2,6",
		"netperf -H 2001:db8::2,6 -p 5001 -t TCP_CRR -l 4 -P 0 -D 0.1 -c -C -Y 32,32 -- -P ,5002 -r 64,64 -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY"}},
	{"sockperf with a DSCP", Sockperf{}, change(liveRR(suite.UDPRR, 14, 4), func(w *suite.Workload) { w.DSCP = 34 }), []string{
		"sockperf server -i 192.0.2.2 -p 5001 --tos 136",
		"sockperf ping-pong -i 192.0.2.2 -p 5001 --tos 136 -m 14 -t 4 --full-rtt"}},
	{"netperf stream", Netperf{}, liveStream(nil), []string{
		"netserver -D -N -p 5001 -L 192.0.2.2,4",
		"netperf -H 192.0.2.2,4 -p 5001 -t TCP_STREAM -l 4 -P 0 -D 0.1 -c -C -f m -- -P ,5002 -m 131072 -M 131072 -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_SD,REMOTE_SD,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS"}},
	{"netperf both directions", Netperf{}, liveStream(func(w *suite.Workload) {
		w.Direction, w.IPVersion, w.NoDelay, w.SendBuffer, w.ReceiveBuffer = suite.Both, 6, true, 100000, 200000
	}), []string{
		"netserver -D -N -p 5001 -L 2001:db8::2,6",
		"netperf -H 2001:db8::2,6 -p 5001 -t TCP_STREAM -l 4 -P 0 -D 0.1 -c -C -f m -- -P ,5002 -m 131072 -M 131072 -s 100000,200000 -S 100000,200000 -D -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_SD,REMOTE_SD,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS",
		"netperf -H 2001:db8::2,6 -p 5001 -t TCP_MAERTS -l 4 -P 0 -D 0.1 -c -C -f m -- -P ,5003 -m 131072 -M 131072 -s 100000,200000 -S 100000,200000 -D -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_SD,REMOTE_SD,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS"}},
	{"netperf sendfile with a send buffer", Netperf{}, liveStream(func(w *suite.Workload) { w.Sendfile, w.SendBuffer = true, 100000 }), []string{
		"netserver -D -N -p 5001 -L 192.0.2.2,4",
		"netperf -H 192.0.2.2,4 -p 5001 -t TCP_SENDFILE -l 4 -P 0 -D 0.1 -c -C -f m -- -P ,5002 -m 131072 -s 100000, -S 100000,"}},
	{"netperf UDP with a receive buffer", Netperf{}, liveDatagrams(0, func(w *suite.Workload) { w.ReceiveBuffer = 200000 }), []string{
		"netserver -D -N -p 5001 -L 192.0.2.2,4",
		"netperf -H 192.0.2.2,4 -p 5001 -t UDP_STREAM -l 4 -P 0 -D 0.1 -c -C -f m -- -P ,5002 -m 1400 -s ,200000 -S ,200000 -R 1 -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"}},
	{"netperf connect/request/response", Netperf{}, liveRR(suite.TCPCRR, 64, 4), []string{
		"netserver -D -N -p 5001 -L 192.0.2.2,4",
		"netperf -H 192.0.2.2,4 -p 5001 -t TCP_CRR -l 4 -P 0 -D 0.1 -c -C -- -P ,5002 -r 64,64 -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY"}},
	{"netperf UDP request/response has no no-delay", Netperf{}, change(liveRR(suite.UDPRR, 1, 4), func(w *suite.Workload) { w.NoDelay, w.Response = true, 100 }), []string{
		"netserver -D -N -p 5001 -L 192.0.2.2,4",
		"netperf -H 192.0.2.2,4 -p 5001 -t UDP_RR -l 4 -P 0 -D 0.1 -c -C -- -P ,5002 -r 1,100 -k THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY"}},
	{"qperf stream", Qperf{}, liveStream(func(w *suite.Workload) { w.ReceiveBuffer = 200000 }), []string{
		"qperf -lp 5001",
		"qperf 192.0.2.2 -lp 5001 -ip 5002 -t 4 -m 131072 -rsb 200000 -uu -vvs -vvt tcp_bw conf"}},
	{"qperf request/response", Qperf{}, liveRR(suite.UDPRR, 64, 6), []string{
		"qperf -lp 5001",
		"qperf 2001:db8::2 -lp 5001 -ip 5002 -t 4 -m 64 -uu -vvs -vvt udp_lat conf"}},
	{"sockperf request/response", Sockperf{}, liveRR(suite.TCPRR, 14, 4), []string{
		"sockperf server -i 192.0.2.2 -p 5001 --tcp --tcp-avoid-nodelay",
		"sockperf ping-pong -i 192.0.2.2 -p 5001 --tcp -m 14 -t 4 --full-rtt --tcp-avoid-nodelay"}},
	{"sockperf request/response with no-delay is its default", Sockperf{}, change(liveRR(suite.TCPRR, 14, 4), func(w *suite.Workload) {
		w.NoDelay, w.SendBuffer, w.ReceiveBuffer = true, 100000, 100000
	}), []string{
		"sockperf server -i 192.0.2.2 -p 5001 --tcp --buffer-size 100000",
		"sockperf ping-pong -i 192.0.2.2 -p 5001 --tcp -m 14 -t 4 --full-rtt --buffer-size 100000"}},
	{"sockperf UDP at a rate", Sockperf{}, liveDatagrams(112e6, nil), []string{
		"sockperf server -i 192.0.2.2 -p 5001",
		"sockperf throughput -i 192.0.2.2 -p 5001 -m 1400 -t 4 --mps=10000"}},
	{"sockperf stream with no-delay", Sockperf{}, liveStream(func(w *suite.Workload) { w.Buffer, w.NoDelay, w.SendBuffer = 60000, true, 100000 }), []string{
		"sockperf server -i 192.0.2.2 -p 5001 --tcp",
		"sockperf throughput -i 192.0.2.2 -p 5001 --tcp -m 60000 -t 4 --buffer-size 100000 --tcp-avoid-nodelay"}},
	{"ntttcp streams", NTttcp{}, liveStream(func(w *suite.Workload) { w.Streams, w.Rate, w.NoDelay = 4, 4e9, true }), []string{
		"ntttcp -r -m 4,*,192.0.2.2 -p 5002 -W 1 -t 3 -C 1 -b 131072 --no-delay",
		"ntttcp -s -m 4,*,192.0.2.2 -p 5002 -W 1 -t 3 -C 1 -b 131072 --no-delay -n 1 -l 1 --show-tcp-retrans --fq-rate-limit 1000000000"}},
	{"ntttcp UDP over IPv6", NTttcp{}, liveDatagrams(0, func(w *suite.Workload) { w.IPVersion = 6 }), []string{
		"ntttcp -r -m 1,*,2001:db8::2 -p 5002 -W 1 -t 3 -C 1 -b 1400 -6 -u",
		"ntttcp -s -m 1,*,2001:db8::2 -p 5002 -W 1 -t 3 -C 1 -b 1400 -6 -u -n 1 -l 1 --show-tcp-retrans"}},
	{"NTttcp's own arguments", BuiltinNTttcp{}, liveStream(func(w *suite.Workload) { w.ReceiveBuffer = 2 << 20 }), []string{
		"windtunnel ntttcp -r -m 1,*,192.0.2.2 -p 5002 -t 3 -wu 1 -cd 1 -rb 2M -json",
		"windtunnel ntttcp -s -m 1,*,192.0.2.2 -p 5002 -t 3 -wu 1 -cd 1 -l 128k -json"}},
	{"NTttcp's own arguments without segmentation, eight threads", BuiltinNTttcp{}, liveStream(func(w *suite.Workload) {
		w.Buffer, w.NoDelay, w.Streams, w.SendBuffer, w.Rate = 1390, true, 8, 100000, 8e9
	}), []string{
		"windtunnel ntttcp -r -m 8,*,192.0.2.2 -p 5002 -t 3 -wu 1 -cd 1 -ndl -json",
		"windtunnel ntttcp -s -m 8,*,192.0.2.2 -p 5002 -t 3 -wu 1 -cd 1 -ndl -l 1390 -sb 100000 -thr 122070 -json"}},
	{"NTttcp's own arguments, UDP over IPv6", BuiltinNTttcp{}, liveDatagrams(0, func(w *suite.Workload) { w.IPVersion, w.NoDelay = 6, true }), []string{
		"windtunnel ntttcp -r -m 1,*,2001:db8::2 -p 5002 -t 3 -wu 1 -cd 1 -6 -u -json",
		"windtunnel ntttcp -s -m 1,*,2001:db8::2 -p 5002 -t 3 -wu 1 -cd 1 -6 -u -l 1400 -json"}},
	{"fio streams with socket buffers", Fio{}, liveStream(func(w *suite.Workload) {
		w.Streams, w.SendBuffer, w.ReceiveBuffer, w.NoDelay, w.Rate = 2, 100000, 200000, true, 1e9
	}), []string{
		"fio --ioengine=net --protocol=tcp --bs=131072 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --clat_percentiles=0 --nodelay=1" +
			" --runtime=5400ms --output-format=json --listen --window_size=200000 --name=forward1 --port=5002 --rw=read --name=forward2 --port=5001 --rw=read",
		"fio --ioengine=net --protocol=tcp --bs=131072 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --clat_percentiles=0 --nodelay=1" +
			" --runtime=2900ms --output-format=normal,json --hostname=192.0.2.2 --ramp_time=400ms --window_size=100000 --name=forward1 --port=5002 --rw=write --rate=62500000 --name=forward2 --port=5001 --rw=write --rate=62500000"}},
	{"fio reverse sends from the receiver", Fio{}, liveStream(func(w *suite.Workload) {
		w.Direction, w.SendBuffer, w.IPVersion, w.Rate = suite.Reverse, 100000, 6, 8e6
	}), []string{
		"fio --ioengine=net --protocol=tcpv6 --bs=131072 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --clat_percentiles=0" +
			" --runtime=5400ms --output-format=json --listen --window_size=100000 --name=reverse1 --port=5001 --rw=write --rate=1000000",
		"fio --ioengine=net --protocol=tcpv6 --bs=131072 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --clat_percentiles=0" +
			" --runtime=2900ms --output-format=normal,json --hostname=2001:db8::2 --ramp_time=400ms --name=reverse1 --port=5001 --rw=read"}},
	{"fio both directions", Fio{}, liveStream(func(w *suite.Workload) { w.Direction = suite.Both }), []string{
		"fio --ioengine=net --protocol=tcp --bs=131072 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --clat_percentiles=0" +
			" --runtime=5400ms --output-format=json --listen --name=reverse1 --port=5002 --rw=write --name=forward1 --port=5001 --rw=read",
		"fio --ioengine=net --protocol=tcp --bs=131072 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --clat_percentiles=0" +
			" --runtime=2900ms --output-format=normal,json --hostname=192.0.2.2 --ramp_time=400ms --name=reverse1 --port=5002 --rw=read --name=forward1 --port=5001 --rw=write"}},
	{"fio UDP request/response", Fio{}, change(liveRR(suite.UDPRR, 64, 4), func(w *suite.Workload) { w.SendBuffer, w.ReceiveBuffer = 100000, 100000 }), []string{
		"fio --ioengine=net --protocol=udp --bs=64 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --pingpong=1 --percentile_list=50:90:99:99.9" +
			" --runtime=5400ms --output-format=json --window_size=100000 --name=forward1 --port=5001 --rw=read",
		"fio --ioengine=net --protocol=udp --bs=64 --size=1T --time_based --group_reporting --scramble_buffers=0 --status-interval=170ms --pingpong=1 --percentile_list=50:90:99:99.9" +
			" --runtime=2900ms --output-format=normal,json --hostname=192.0.2.2 --ramp_time=400ms --window_size=100000 --name=forward1 --port=5001 --rw=write"}},
}

// jobFor is a job of 3.4 seconds in all.
func jobFor(w suite.Workload) Job {
	pair := &namespacePair{}
	return Job{
		Workload: w,
		Timing:   suite.Timing{Warmup: 500 * time.Millisecond, Duration: 2700 * time.Millisecond, Cooldown: 200 * time.Millisecond},
		Sender:   pair.address(OnSender, w.IPVersion),
		Receiver: pair.address(OnReceiver, w.IPVersion),
		Port:     5001,
		MTU:      1500,
		Self:     "windtunnel",
	}
}

func TestPlansAreTheseCommandLines(t *testing.T) {
	for _, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			processes := must.Get(p.tool.Plan(jobFor(p.w)))(t)
			var got []string
			for _, process := range processes {
				got = append(got, strings.Join(process.Argv, " "))
			}
			must.Equal(t, p.argvs, got)
		})
	}
}

func TestPlansStartServersBeforeClients(t *testing.T) {
	for _, p := range plans {
		processes := must.Get(p.tool.Plan(jobFor(p.w)))(t)
		server := processes[0]
		if server.Role != "server" || server.On != OnReceiver {
			t.Errorf("%s: the first process is %s on the %s", p.name, server.Role, server.On)
		}
		if ready := server.Ready != nil || server.Port == 5001; !ready {
			t.Errorf("%s: nothing tells when the server is ready", p.name)
		}
		ends := p.tool == Tool(NTttcp{}) || p.tool == Tool(BuiltinNTttcp{})
		if server.Stays == ends {
			t.Errorf("%s: Stays is %v for the server", p.name, server.Stays)
		}
		if (p.tool.Name() == "sockperf" || p.tool.Name() == "fio") && server.UDP != p.w.Kind.UDP() {
			t.Errorf("%s: the server's port is looked for in the wrong table", p.name)
		}
		roles := map[string]bool{"server": true}
		for _, c := range processes[1:] {
			if c.On != OnSender || c.Stays || roles[c.Role] {
				t.Errorf("%s: client %q on the %s, stays %v", p.name, c.Role, c.On, c.Stays)
			}
			roles[c.Role] = true
		}
	}
}

func TestReadinessKnowsTheLinesOfRealRuns(t *testing.T) {
	says := func(ready func(string) bool, file string) int {
		n := 0
		for _, line := range strings.Split(captured{outputs: client(file)}.read(t)["client"].Stdout, "\n") {
			if ready(line) {
				n++
			}
		}
		return n
	}
	must.Equal(t, 1, says(ntttcpReady, "nt_r.txt"))
	must.Equal(t, 1, says(ntttcpStarts, "nt_s.txt"))
	must.Equal(t, 1, says(fioStarts, "fio_rr_client.txt"))
	must.Equal(t, 1, says(sockperfStarts, "sockperf_rtt.txt"))
}

func TestUnsupportedWorkloadsAreRefusedWithTheReason(t *testing.T) {
	reverse := func(w *suite.Workload) { w.Direction = suite.Reverse }
	refusals := []struct {
		tool   Tool
		w      suite.Workload
		reason string
	}{
		{Iperf3{}, liveRR(suite.TCPRR, 1, 4), "streams only"},
		{Iperf3{}, liveRR(suite.TCPCRR, 1, 4), "streams only"},
		{Iperf3{}, liveRR(suite.UDPRR, 1, 4), "streams only"},
		{Iperf3{}, liveStream(func(w *suite.Workload) { w.SendBuffer = 1 }), "one size"},
		{Iperf3{}, liveStream(func(w *suite.Workload) { w.Streams = 129 }), "at most 128"},
		{Iperf3{}, liveDatagrams(0, func(w *suite.Workload) { w.Buffer = 8 }), "16 bytes"},
		{Netperf{}, liveDatagrams(0, reverse), "from the client only"},
		{Netperf{}, liveStream(func(w *suite.Workload) { w.Rate = 1 }), "--enable-intervals"},
		{Netperf{}, liveStream(func(w *suite.Workload) { w.Streams = 16 }), "a port for each"},
		{Netperf{}, liveStream(func(w *suite.Workload) { w.Streams, w.Direction = 8, suite.Both }), "needs 16"},
		{Netperf{}, liveStream(func(w *suite.Workload) { w.Sendfile, w.Direction = true, suite.Reverse }), "sender only"},
		{Netperf{}, liveStream(func(w *suite.Workload) { w.Sendfile, w.Streams = true, 2 }), "one such stream"},
		{Qperf{}, liveStream(reverse), "from the client only"},
		{Qperf{}, liveStream(func(w *suite.Workload) { w.Streams = 2 }), "one connection"},
		{Qperf{}, liveStream(func(w *suite.Workload) { w.Rate = 1 }), "limit the rate"},
		{Qperf{}, liveStream(func(w *suite.Workload) { w.Sendfile = true }), "no sendfile"},
		{Qperf{}, liveStream(func(w *suite.Workload) { w.NoDelay = true }), "TCP_NODELAY"},
		{Qperf{}, liveStream(func(w *suite.Workload) { w.SendBuffer = 1 }), "server only"},
		{Qperf{}, change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.ReceiveBuffer = 1 }), "server only"},
		{Qperf{}, change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.Response = 2 }), "differ"},
		{Qperf{}, change(liveRR(suite.TCPRR, 4000, 4), func(w *suite.Workload) { w.NoDelay = true }), "one segment"},
		{Qperf{}, liveRR(suite.TCPCRR, 1, 4), "connecting"},
		{Sockperf{}, liveStream(nil), "at most 65507"},
		{Sockperf{}, liveRR(suite.TCPRR, 1, 4), "at least 14"},
		{Sockperf{}, liveRR(suite.TCPRR, 14, 6), "IPv4 only"},
		{Sockperf{}, liveRR(suite.TCPCRR, 14, 4), "connecting"},
		{Sockperf{}, liveDatagrams(0, reverse), "from the client only"},
		{Netperf{}, liveStream(func(w *suite.Workload) { w.Sendfile, w.DSCP = true, 46 }), "the DSCP of TCP_SENDFILE"},
		{Qperf{}, liveStream(func(w *suite.Workload) { w.DSCP = 46 }), "dscp needs the tool builtin, iperf3, netperf or sockperf"},
		{Sockperf{}, liveDatagrams(0, func(w *suite.Workload) { w.Streams = 2 }), "one connection"},
		{Sockperf{}, liveDatagrams(0, func(w *suite.Workload) { w.Sendfile = true }), "no sendfile"},
		{Sockperf{}, change(liveRR(suite.TCPRR, 14, 4), func(w *suite.Workload) { w.Response = 20 }), "differ"},
		{Sockperf{}, change(liveRR(suite.TCPRR, 14, 4), func(w *suite.Workload) { w.SendBuffer = 20 }), "one size"},
		{NTttcp{}, liveRR(suite.TCPRR, 1, 4), "streams only"},
		{NTttcp{}, liveStream(reverse), "from the sender only"},
		{NTttcp{}, liveStream(func(w *suite.Workload) { w.Streams = 16 }), "a port for each"},
		{NTttcp{}, liveStream(func(w *suite.Workload) { w.ReceiveBuffer = 1 }), "socket buffers"},
		{NTttcp{}, liveStream(func(w *suite.Workload) { w.Sendfile = true }), "no sendfile"},
		{NTttcp{}, liveDatagrams(1, nil), "TCP only"},
		{BuiltinNTttcp{}, liveRR(suite.TCPRR, 1, 4), "streams only"},
		{BuiltinNTttcp{}, liveStream(reverse), "from the sender only"},
		{BuiltinNTttcp{}, liveStream(func(w *suite.Workload) { w.Streams = 16 }), "a port for each"},
		{BuiltinNTttcp{}, liveStream(func(w *suite.Workload) { w.Sendfile = true }), "no sendfile"},
		{BuiltinNTttcp{}, liveStream(func(w *suite.Workload) { w.Rate = 12000 }), "1 KiB/s"},
		{Fio{}, liveRR(suite.TCPCRR, 1, 4), "connecting"},
		{Fio{}, change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.Response = 2 }), "differ"},
		{Fio{}, change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.SendBuffer = 1 }), "one size"},
		{Fio{}, liveStream(func(w *suite.Workload) { w.Direction, w.ReceiveBuffer = suite.Both, 1 }), "one size"},
		{Fio{}, liveStream(func(w *suite.Workload) { w.Streams, w.Direction = 9, suite.Both }), "needs 18"},
		{Fio{}, liveStream(func(w *suite.Workload) { w.Sendfile = true }), "no sendfile"},
		{Fio{}, liveStream(func(w *suite.Workload) { w.Rate = 799 }), "whole bytes"},
		{Fio{}, liveDatagrams(0, reverse), "from the client only"},
	}
	for _, t := range []Tool{Iperf3{}, Netperf{}, Qperf{}, Sockperf{}, NTttcp{}, BuiltinNTttcp{}, Fio{}} {
		refusals = append(refusals, struct {
			tool   Tool
			w      suite.Workload
			reason string
		}{t, liveStream(func(w *suite.Workload) { w.ReceiverWork = 1 }), "use the builtin tool"})
		if _, keeps := t.(BuiltinNTttcp); !keeps {
			refusals = append(refusals, refusals[len(refusals)-1])
			last := &refusals[len(refusals)-1]
			last.w, last.reason = liveStream(func(w *suite.Workload) { w.Buffer, w.NoDelay, w.PacketPerSend = 1390, true, true }), "packet_per_send needs"
		}
	}
	for _, t := range []Tool{Iperf3{}, Netperf{}, Qperf{}, Sockperf{}, NTttcp{}, BuiltinNTttcp{}, Fio{}} {
		refusals = append(refusals, struct {
			tool   Tool
			w      suite.Workload
			reason string
		}{t, loadedRR(), "a load beside request/response"})
	}
	for _, r := range refusals {
		err := r.tool.Supports(r.w)
		if err == nil || !strings.Contains(err.Error(), r.reason) || !strings.HasPrefix(err.Error(), r.tool.Name()+" ") {
			t.Errorf("%s on %s of %d/%d bytes: %v, want a reason with %q", r.tool.Name(), r.w.Kind, r.w.Buffer, r.w.Request, err, r.reason)
		}
		if plan, planErr := r.tool.Plan(jobFor(r.w)); planErr == nil || planErr.Error() != err.Error() {
			t.Errorf("%s plans what it does not support: %v, %v", r.tool.Name(), plan, planErr)
		}
	}
}

func TestPlansRefuseJobsWithoutPortsOrAddresses(t *testing.T) {
	spoil := map[string]func(*Job){
		"no port":           func(j *Job) { j.Port = 0 },
		"a port at the end": func(j *Job) { j.Port = 65521 },
		"no address":        func(j *Job) { j.Receiver = netip.Addr{} },
		"IPv6 for IPv4":     func(j *Job) { j.Receiver = netip.MustParseAddr("2001:db8::2") },
	}
	for _, p := range plans {
		if p.w.IPVersion != 4 {
			continue
		}
		for what, do := range spoil {
			job := jobFor(p.w)
			do(&job)
			if processes, err := p.tool.Plan(job); err == nil {
				t.Errorf("%s with %s: %v", p.name, what, processes)
			}
		}
	}
}

func TestWholeSecondsCoverTheTiming(t *testing.T) {
	for _, c := range []struct {
		timing suite.Timing
		want   int
	}{
		{suite.Timing{}, 1},
		{suite.Timing{Duration: time.Second}, 1},
		{suite.Timing{Duration: time.Second + 1}, 2},
		{suite.Timing{Warmup: 500 * time.Millisecond, Duration: 2 * time.Second, Cooldown: 500 * time.Millisecond}, 3},
		{suite.Timing{Warmup: time.Second, Duration: 10 * time.Second, Cooldown: time.Millisecond}, 12},
	} {
		if got := wholeSeconds(c.timing); got != c.want {
			t.Errorf("%+v takes %d s, want %d", c.timing, got, c.want)
		}
	}
}

func TestStepsCountInProportionAndTooFewGiveNoRate(t *testing.T) {
	ss := steps{{0, 1, 10}, {1, 2, 30}, {2, 2, 99}, {2, 3, 50}}
	if amount, covered := ss.over(0.5, 2.5); amount != 5+30+25 || covered != 2 {
		t.Errorf("over [0.5, 2.5] are %v in %v s, want 60 in 2 s", amount, covered)
	}
	if rate, ok := ss.rate(1, 3); rate != 40 || !ok {
		t.Errorf("rate in [1, 3] is %v, %v, want 40", rate, ok)
	}
	if rate, ok := ss.rate(2, 4); ok {
		t.Errorf("rate in [2, 4] is %v although half of it is not covered", rate)
	}
	if rate, ok := ss.rate(1, 1); ok {
		t.Errorf("rate of an empty window is %v", rate)
	}
}
