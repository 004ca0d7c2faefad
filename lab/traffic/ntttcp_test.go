package traffic

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/suite"
)

func TestLinesOfNTttcpsDocumentationAreRead(t *testing.T) {
	base := options{port: 5001, send: -1, receive: -1, limit: 3 * time.Hour, wait: 600 * time.Second, buffers: endless, timed: true, runTime: 15 * time.Second}
	for line, change := range map[string]func(*options){
		"-s -m 1,*,10.0.1.4 -l 128k -t 15": func(o *options) {
			o.sender, o.length, o.mappings = true, 128<<10, []mapping{{1, -1, "10.0.1.4"}}
		},
		"-r -m 1,*,10.0.1.4 -rb 2M -t 15": func(o *options) {
			o.length, o.receive, o.mappings = 64<<10, 2<<20, []mapping{{1, -1, "10.0.1.4"}}
		},
		"-s -m 1,*,172.16.0.22 -l 1390 -t 15 -ndl": func(o *options) {
			o.sender, o.length, o.noDelay, o.mappings = true, 1390, true, []mapping{{1, -1, "172.16.0.22"}}
		},
		"-S -M 4,0,10.0.0.5 2,1,10.0.0.6 -T 15 -WU 2 -CD 3 -U -NS -P 6000 -V -HPT": func(o *options) {
			o.sender, o.length, o.udp, o.noSync, o.port, o.verbose, o.hidden = true, 128, true, true, 6000, true, true
			o.warmup, o.cooldown = 2*time.Second, 3*time.Second
			o.mappings = []mapping{{4, 0, "10.0.0.5"}, {2, 1, "10.0.0.6"}}
		},
		"-r -m 1,*,h -t 15 -xml": func(o *options) { o.length, o.xml, o.mappings = 64<<10, "xml.txt", []mapping{{1, -1, "h"}} },
		"-r -xml out.xml -m 1,*,h -t 15 -rb -1": func(o *options) {
			o.length, o.xml, o.mappings = 64<<10, "out.xml", []mapping{{1, -1, "h"}}
		},
		"-s -m 1,*,h -n 100 -t 15 -wu 3": func(o *options) {
			o.sender, o.length, o.mappings = true, 64<<10, []mapping{{1, -1, "h"}}
			o.timed, o.runTime, o.buffers, o.limit = false, 0, 100, 15*time.Second
		},
		"-s -m 1,*,h": func(o *options) {
			o.sender, o.length, o.mappings = true, 64<<10, []mapping{{1, -1, "h"}}
			o.timed, o.runTime, o.buffers = false, 0, 20<<10
		},
	} {
		want := base
		change(&want)
		got, err := parseNTttcp(strings.Fields(line))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", line, got, err, want)
		}
	}
}

func TestFlagsWithoutAnEqualAreAcceptedAndNoted(t *testing.T) {
	o, err := parseNTttcp(strings.Fields("-s -m 1,*,h -a 6 -w -nsb -a -t 1"))
	if err != nil || o.async != 2 || len(o.notes) != 4 {
		t.Errorf("%+v, %v: want four notes, and -a's default from its second use", o, err)
	}
}

func TestWrongNTttcpFlagsAreErrorsWithTheUsage(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "neither -s (sender) nor -r",
		"-s":                           "-m THREADS,PROCESSOR,RECEIVER is missing",
		"-s -m":                        "-m needs a mapping",
		"-s -m 1,*":                    "three parts",
		"-s -m 0,*,h":                  "number of threads",
		"-s -m 1,x,h":                  "neither a number nor *",
		"-s -m 1,*,":                   "address is missing",
		"-s -m 1,*,h -m 1,*,h":         "-m is there twice",
		"-s -m 1,*,h -l":               "-l needs an argument",
		"-s -m 1,*,h -l 0":             `-l "0"`,
		"-s -m 1,*,h -l 1G":            `-l "1G"`,
		"-s -m 1,*,h -u -l 128k":       "at most 65507",
		"-s -m 1,*,h -t -5":            `-t "-5"`,
		"-s -m 9,*,h -p 65530":         "ports up to 65538",
		"-s -m 1,*,h -z":               `"-z" is not a flag`,
		"-s -m 1,*,h -uso 1400":        "not offered",
		"-r -m 1,*,h -nic 10.0.0.1":    "-nic",
		"-r -m 1,*,h -thr 100":         "-thr",
		"-s -m 1,*,h -n 9999999999999": "-n",
	} {
		var stdout, stderr bytes.Buffer
		code := NTttcp(strings.Fields(line), &stdout, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "usage: windtunnel ntttcp") {
			t.Errorf("%q: exit %d, %.200q: want 2, %q and the usage", line, code, stderr.String(), want)
		}
	}
}

// ntttcpPair runs a receiver and a sender and returns what they printed.
func ntttcpPair(t *testing.T, host string, receiver, sender string) (received, sent string) {
	t.Helper()
	port := freePort(t) + 1
	mapping := fmt.Sprintf("-p %d -m 2,*,%s ", port, host)
	r := start(t, "ntttcp", strings.Fields("-r "+mapping+receiver)...)
	if strings.Contains(receiver, "-u") {
		awaitSocket(t, "udp", port+1, receives) // nothing tells a sender with -ns that a UDP receiver is there
	}
	s := start(t, "ntttcp", strings.Fields("-s "+mapping+sender)...)
	code, sent, stderr := s.wait(20 * time.Second)
	if code != 0 {
		t.Fatalf("the sender exited with %d: %s", code, stderr)
	}
	code, received, stderr = r.wait(20 * time.Second)
	if code != 0 {
		t.Fatalf("the receiver exited with %d: %s", code, stderr)
	}
	return received, sent
}

// row returns the numbers of the line two below the one that begins with head.
func row(t *testing.T, text, head string) []float64 {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), head) && i+2 < len(lines) {
			var numbers []float64
			for _, f := range strings.Fields(lines[i+2]) {
				v, err := strconv.ParseFloat(f, 64)
				if err != nil {
					t.Fatalf("%q: %v", lines[i+2], err)
				}
				numbers = append(numbers, v)
			}
			return numbers
		}
	}
	t.Fatalf("no line begins with %q in:\n%s", head, text)
	return nil
}

func TestNTttcpSendsTheRequestedBuffersAndReceivesThemAll(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, flags := range []string{"-n 500 -l 64k", "-n 500 -l 64k -ns", "-n 500 -l 64k -wa -ndl -sb 256k -rb 256k"} {
			t.Run(ip+flags, func(t *testing.T) {
				received, sent := ntttcpPair(t, host, flags, flags)
				// 2 threads of 500 buffers of 64 KiB: 62.5 MiB.
				for end, text := range map[string]string{"sender": sent, "receiver": received} {
					totals := row(t, text, "Bytes(MEG)")
					if totals[0] != 62.5 {
						t.Errorf("%s: %.6f MiB, want 62.5", end, totals[0])
					}
					if !near(totals[3], totals[0]/totals[1], 0.2) {
						t.Errorf("%s: %.3f MB/s, want %.6f / %.3f", end, totals[3], totals[0], totals[1])
					}
					if buffers := row(t, text, "Throughput(Buffers/s)"); buffers[2] != 1000 {
						t.Errorf("%s: %.3f buffers, want 1000", end, buffers[2])
					}
					if threads := row(t, text, "Thread  Time(s)"); threads[0] != 0 || threads[2] <= 0 {
						t.Errorf("%s: thread line %v", end, threads)
					}
					if packets := row(t, text, "Packets Sent"); len(packets) != 5 || packets[0] <= 0 {
						t.Errorf("%s: packet line %v", end, packets)
					}
				}
			})
		}
	}
}

func TestNTttcpMeasuresForTheRequestedTime(t *testing.T) {
	received, sent := ntttcpPair(t, "127.0.0.1", "-t 1 -l 128k", "-t 1 -l 128k -thr 20000")
	s, r := row(t, sent, "Bytes(MEG)"), row(t, received, "Bytes(MEG)")
	// Two threads of 20000 KB/s, and the first buffer of each.
	if due := 40000.0/1024*s[1] + 0.25; s[1] < 0.99 || s[0] > due || s[0] < due/10 {
		t.Errorf("%.3f MB sent in %.3f s, want at most %.3f in 1 s or more", s[0], s[1], due)
	}
	// At the end of the sender's window, each thread can be within a send call. Its 128 KiB
	// do not count, but the receiver may have read a part of them.
	if r[0] <= 0 || r[0] > s[0]+0.25 || r[1] < 0.99 {
		t.Errorf("%.3f MB received in %.3f s, want at most the %.3f MB sent and 0.25", r[0], r[1], s[0])
	}
}

func TestNTttcpCountsDatagrams(t *testing.T) {
	for _, flags := range []string{"-u -n 300 -l 1000 -rb 4M", "-u -n 300 -l 1000 -rb 4M -ns"} {
		t.Run(flags, func(t *testing.T) {
			received, sent := ntttcpPair(t, "127.0.0.1", flags, flags+" -thr 2000")
			want := 600 * 1000.0 / mib
			if s, r := row(t, sent, "Bytes(MEG)"), row(t, received, "Bytes(MEG)"); !near(s[0], want, 1e-4) || !near(r[0], want, 1e-4) {
				t.Errorf("%.6f MiB sent, %.6f received, want %.6f", s[0], r[0], want)
			}
		})
	}
}

// The datagrams that wait in the receiver's sockets when the sender has ended count too.
func TestNTttcpCountsTheDatagramsThatItReadsLate(t *testing.T) {
	mapping := fmt.Sprintf(" -u -n 6000 -l 100 -p %d -m 2,*,127.0.0.1", freePort(t)+1)
	r := start(t, "ntttcp", strings.Fields("-r -rb 4M"+mapping)...)
	s := start(t, "ntttcp", strings.Fields("-s -thr 1000"+mapping)...)
	s.progresses(300 * time.Millisecond) // of 600 ms
	must.Succeed(t, r.cmd.Process.Signal(syscall.SIGSTOP))
	code, sent, stderr := s.wait(20 * time.Second)
	must.Succeed(t, r.cmd.Process.Signal(syscall.SIGCONT))
	if code != 0 {
		t.Fatalf("the sender exited with %d: %s", code, stderr)
	}
	_, received, stderr := r.wait(20 * time.Second)
	for end, text := range map[string]string{"sender": sent, "receiver": received + stderr} {
		if totals, want := row(t, text, "Bytes(MEG)"), 2*6000*100.0/mib; !near(totals[0], want, 1e-4) {
			t.Errorf("%s: %.6f MiB, want %.6f", end, totals[0], want)
		}
	}
}

func TestNTttcpsJSONHasTheFiguresOfItsText(t *testing.T) {
	received, sent := ntttcpPair(t, "127.0.0.1", "-n 300 -l 4096 -json", "-n 300 -l 4096 -json")
	for _, out := range []string{received, sent} {
		text, line, found := strings.Cut(out, "{")
		var r NTttcpResult
		if !found {
			t.Fatalf("no JSON in\n%s", out)
		}
		must.Succeed(t, json.Unmarshal([]byte("{"+line), &r))
		totals, counts := row(t, text, "Bytes(MEG)"), row(t, text, "Packets Sent")
		if !near(float64(r.Bytes)/mib, totals[0], 1e-6) || math.Abs(r.Seconds-totals[1]) > 0.0006 || r.Bytes != 2*300*4096 {
			t.Errorf("%+v, and the text has %v", r, totals)
		}
		if float64(r.Retransmits) != counts[2] || float64(r.Errors) != counts[3] || math.Abs(r.CPU-counts[4]) > 0.001 {
			t.Errorf("%+v, and the text has %v", r, counts)
		}
	}
}

func TestNTttcpEndsOnSIGINTWithItsFiguresSoFar(t *testing.T) {
	port := freePort(t) + 1
	mapping := fmt.Sprintf("-p %d -m 1,*,127.0.0.1 -t 60", port)
	file := filepath.Join(t.TempDir(), "r.xml")
	r := start(t, "ntttcp", strings.Fields("-r "+mapping+" -xml "+file)...)
	s := start(t, "ntttcp", strings.Fields("-s "+mapping)...)
	s.progresses(300 * time.Millisecond)
	s.signal(syscall.SIGINT)
	code, out, stderr := s.wait(5 * time.Second)
	if code != 0 {
		t.Fatalf("the sender exited with %d: %s", code, stderr)
	}
	if totals := row(t, out, "Bytes(MEG)"); totals[0] <= 0 || totals[1] > 5 {
		t.Errorf("totals %v: want bytes of a short run", totals)
	}
	if code, _, stderr := r.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "s of the 60 s") {
		t.Errorf("the receiver exited with %d: %s", code, stderr)
	}
	if d := readXML(t, file); d.XMLName.Local != "ntttcpr" || number(t, d.Bytes.Value) <= 0 {
		t.Errorf("the receiver's XML holds %+v", d.Bytes)
	}
}

// The figures are printed, too.
func TestNTttcpFailsIfTheOtherEndEndsEarly(t *testing.T) {
	for name, flags := range map[string][2]string{
		"a shorter sender, synchronised": {"-t 60", "-t 1"},
		"a shorter sender":               {"-t 60 -ns", "-t 1 -ns"},
		"fewer buffers":                  {"-n 20000 -l 1000", "-n 200 -l 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mapping := fmt.Sprintf("-p %d -m 2,*,127.0.0.1 ", freePort(t)+1)
			r := start(t, "ntttcp", strings.Fields("-r "+mapping+flags[0])...)
			s := start(t, "ntttcp", strings.Fields("-s "+mapping+flags[1]+" -thr 20000")...)
			if code, _, stderr := s.wait(20 * time.Second); code != 0 {
				t.Errorf("the sender exited with %d: %s", code, stderr)
			}
			code, out, stderr := r.wait(20 * time.Second)
			if code != 1 || !strings.Contains(stderr, "the other end") || row(t, out, "Bytes(MEG)")[0] <= 0 {
				t.Errorf("the receiver exited with %d: %s%s", code, stderr, out)
			}
		})
	}
}

func TestNTttcpFailsIfTheReceiverIsKilled(t *testing.T) {
	t.Parallel()
	mapping := fmt.Sprintf("-p %d -m 1,*,127.0.0.1 -t 60", freePort(t)+1)
	r := start(t, "ntttcp", strings.Fields("-r "+mapping)...)
	s := start(t, "ntttcp", strings.Fields("-s "+mapping)...)
	s.progresses(300 * time.Millisecond)
	r.signal(syscall.SIGKILL)
	if code, _, stderr := s.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "s of the 60 s") {
		t.Errorf("the sender exited with %d: %s", code, stderr)
	}
}

func TestNTttcpNamesTheNumberOfMissingSenders(t *testing.T) {
	for missing := range 2 {
		t.Run(fmt.Sprintf("thread %d", missing), func(t *testing.T) {
			t.Parallel()
			port := freePort(t) + 1
			r := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-r -p %d -m 2,*,127.0.0.1 -t 1 -ns", port))...)
			start(t, "ntttcp", strings.Fields(fmt.Sprintf("-s -p %d -m 1,*,127.0.0.1 -t 60 -ns", port+1-missing))...)
			awaitSocket(t, "tcp", port+1-missing, connected)
			r.signal(syscall.SIGINT)
			want := fmt.Sprintf("1 of 2 threads have a sender, and the first one without is on port %d", port+missing)
			if code, _, stderr := r.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, want) {
				t.Errorf("the receiver exited with %d: %s", code, stderr)
			}
		})
	}
}

func TestNTttcpEndsOnASignalWhileItWaitsForTheOtherEnd(t *testing.T) {
	testprogram.HeedHangups()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		port := freePort(t) + 1
		mute := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port-1)))(t) // accepts connections, and never answers
		s := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-s -p %d -m 1,*,127.0.0.1 -t 1", port))...)
		connected := must.Get(mute.Accept())(t)
		s.signal(signal)
		if code, _, stderr := s.wait(3 * time.Second); code != 1 || !strings.Contains(stderr, "nothing was measured") {
			t.Errorf("%v: exit %d, %q", signal, code, stderr)
		}
		must.Succeed(t, connected.Close())
		must.Succeed(t, mute.Close())
	}
}

func TestErrorsOfNTttcpHaveTheReason(t *testing.T) {
	port := freePort(t) + 1
	alone := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-r -p %d -m 1,*,127.0.0.1 -t 1 -to 200", port))...)
	if code, _, stderr := alone.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "no sender connected") {
		t.Errorf("a receiver alone: exit %d, %q", code, stderr)
	}
	foreign := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-r -p %d -m 1,*,192.0.2.1 -t 1", port))...)
	if code, _, stderr := foreign.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "this machine's own") {
		t.Errorf("a foreign address: exit %d, %q", code, stderr)
	}
	unwritable := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-r -p %d -m 1,*,127.0.0.1 -t 1 -xml /nowhere/x.xml", port))...)
	if code, _, stderr := unwritable.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "/nowhere/x.xml") {
		t.Errorf("an unwritable file: exit %d, %q", code, stderr)
	}
	first := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-r -p %d -m 1,*,127.0.0.1 -t 1 -ns -to 3000", port))...)
	awaitSocket(t, "tcp", port, listens)
	second := start(t, "ntttcp", strings.Fields(fmt.Sprintf("-r -p %d -m 1,*,127.0.0.1 -t 1 -ns", port))...)
	if code, _, stderr := second.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "address already in use") {
		t.Errorf("a port in use: exit %d, %q", code, stderr)
	}
	first.signal(syscall.SIGINT)
	if code, _, stderr := first.wait(5 * time.Second); code != 1 || !strings.Contains(stderr, "nothing was measured") {
		t.Errorf("a receiver interrupted before any traffic: exit %d, %q", code, stderr)
	}
}

func readXML(t *testing.T, file string) (d ntttcpXML) {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	if err := xml.Unmarshal(text, &d); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	return must.Get(strconv.ParseFloat(text, 64))(t)
}

// example is an account with figures whose every sum can be done in the head.
func example() account {
	o, err := parseNTttcp(strings.Fields("-s -m 2,*,10.0.1.4 -l 64k -t 2 -wu 1 -ndl"))
	if err != nil {
		panic(err)
	}
	return account{
		options: o, computer: "node", seconds: 2, mhz: 2000,
		threads: []threadAccount{{2, 64 << 20, 1024}, {2, 192 << 20, 3072}},
		usage:   machineCounters{busy: 50, total: 100, processors: 2, interrupts: 1000, sent: 1 << 15, received: 4000, retransmits: 3, errors: 1},
	}
}

func TestTextIsNTttcpsWithBinaryMegabytes(t *testing.T) {
	var out bytes.Buffer
	must.Succeed(t, example().printText(&out))
	want := `

Thread  Time(s) Throughput(KB/s) Avg B / Compl
======  ======= ================ =============
     0    2.000        32768.000     65536.000
     1    2.000        98304.000     65536.000


#####  Totals:  #####


   Bytes(MEG)    realtime(s) Avg Frame Size Throughput(MB/s)
================ =========== ============== ================
      256.000000       2.000       8192.000          128.000


Throughput(Buffers/s) Cycles/Byte       Buffers
===================== =========== =============
             2048.000      14.901      4096.000


DPCs(count/s) Pkts(num/DPC)   Intr(count/s) Pkts(num/intr)
============= ============= =============== ==============
        0.000         0.000         500.000          4.000


Packets Sent Packets Received Retransmits Errors Avg. CPU %
============ ================ =========== ====== ==========
       32768             4000           3      1     50.000
`
	must.Equal(t, want, out.String())
}

func TestXMLIsReadWithDecimalMegabits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.xml")
	must.Succeed(t, os.WriteFile(file, bytes.Repeat([]byte("old "), 10000), 0o644)) // is replaced, not appended to
	a := example()
	a.options.xml = file
	must.Succeed(t, a.writeXML())
	d := readXML(t, file)
	must.Equal(t, a.document(), d)
	if d.XMLName.Local != "ntttcps" || d.Bytes != (metric{"MB", "256.000000"}) || d.CPU != (metric{"%", "50.000"}) || d.Length != 65536 {
		t.Errorf("the document is %+v, want 256 MB at 50 %% of the CPU in 64 KiB", d)
	}
	wantRates := []metric{{"MB/s", "128.000"}, {"mbps", "1073.742"}, {"Bps", "134217728.0"}, {"buffers/s", "2048.000"}}
	must.Equal(t, wantRates, d.Rates)
	if len(d.Threads) != 2 || d.Threads[1].Rates[0] != (metric{"KB/s", "98304.000"}) {
		t.Errorf("threads %+v", d.Threads)
	}
	if d.Parameters.RunTime != 2000 || d.Parameters.Warmup != 1000 {
		t.Errorf("times %d and %d, want milliseconds", d.Parameters.RunTime, d.Parameters.Warmup)
	}
}

// names lists the elements of a document as path[@metric].
func names(t *testing.T, text []byte) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var path []string
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return found
		}
		must.Succeed(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
			name := strings.Join(path, "/")
			for _, a := range e.Attr {
				if a.Name.Local == "metric" {
					name += "[" + a.Value + "]"
				}
			}
			found[name] = true
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

func TestXMLHasTheNamesOfARealDocument(t *testing.T) {
	// Captured from ntttcp-for-linux 1.4.3, which took NTttcp's names and added
	// some of its own.
	captured := must.Get(os.ReadFile("testdata/ntttcp_sender.xml"))(t)
	ours := must.Get(xml.Marshal(example().document()))(t)
	have := names(t, ours)
	linuxOnly := []string{
		"conns_tested", "tcp_retransmits", "cpu_cores", "cpu_speed", "user", "system", "idle", "iowait",
		"softirq", "cycles_per_byte", "cpu_busy_all", "tcp_average_rtt", "os", "total_interrupts",
	}
next:
	for name := range names(t, captured) {
		for _, own := range linuxOnly {
			if strings.HasPrefix(name, "ntttcps/"+own) {
				continue next
			}
		}
		if !have[name] {
			t.Errorf("%s is in the captured document and not in ours", name)
		}
	}
	// What NTttcp 5.40 has and the captured document lacks.
	for _, name := range []string{"cpu[%]", "num_processors", "cycles[cycles/byte]", "thread/throughput[Bps]", "throughput[Bps]", "total_buffers"} {
		if !have["ntttcps/"+name] {
			t.Errorf("%s of NTttcp 5.40 is missing", name)
		}
	}
}

// fakeProc returns a /proc with these files.
func fakeProc(t *testing.T, files map[string]string) procfs.FS {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, os.MkdirAll(filepath.Join(dir, "42/net"), 0o755))
	must.Succeed(t, os.Symlink("42", filepath.Join(dir, "self")))
	for name, text := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return must.Get(procfs.NewFS(dir))(t)
}

func TestMachineCountersAreReadFromProc(t *testing.T) {
	const (
		stat = "cpu  100 10 50 800 20 5 15 7 3 1\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 123456 0 9\n"
		snmp = "Ip: InReceives OutRequests\nIp: 10 2\nTcp: InSegs OutSegs RetransSegs AttemptFails\nTcp: 11 22 33 44\nUdp: InDatagrams InErrors OutDatagrams\nUdp: 5 6 7\n"
		// IPv4 merged 40 packets into 10 buffers, IPv6 7 into 2.
		netstat = "IpExt: InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts\nIpExt: 36 1 2 1\n"
		snmp6   = "Ip6InReceives 2\nIp6InNoECTPkts 5\nIp6InECT0Pkts 2\nUdp6InDatagrams \t100\nUdp6OutDatagrams\t200\nUdp6InErrors 1\n"
	)
	proc := fakeProc(t, map[string]string{"stat": stat, "42/net/snmp": snmp, "42/net/snmp6": snmp6, "42/net/netstat": netstat, "cpuinfo": "processor\t: 0\ncpu MHz\t\t: 2599.998\n"})
	m, err := readMachine(proc, false)
	must.Succeed(t, err)
	if math.Abs(m.busy-1.8) > 1e-9 || math.Abs(m.total-10.07) > 1e-9 || m.processors != 2 || m.interrupts != 123456 {
		t.Errorf("%+v: want 1.8 s busy of 10.07, 2 processors, 123456 interrupts", m)
	}
	if m.received != 11+30+5 || m.sent != 22 || m.retransmits != 33 || m.errors != 44 {
		t.Errorf("TCP %+v", m)
	}
	u := must.Get(readMachine(proc, true))(t)
	if u.received != 105 || u.sent != 207 || u.errors != 7 || u.retransmits != 0 {
		t.Errorf("UDP %+v", u)
	}
	if runtime.GOARCH == "amd64" && megahertz(proc) != 2599.998 {
		t.Error("the clock of /proc/cpuinfo is not read")
	}
	for what, files := range map[string]map[string]string{
		"no files":      {},
		"no CPU":        {"stat": "intr 5 0\n", "42/net/snmp": snmp},
		"no number":     {"stat": "cpu  1 2 x 4 5 6 7 8\ncpu0 1\n", "42/net/snmp": snmp},
		"few counters":  {"stat": stat, "42/net/snmp": "Tcp: InSegs\nTcp: 1\n"},
		"no TCP or UDP": {"stat": stat, "42/net/snmp": ""},
	} {
		if m, err := readMachine(fakeProc(t, files), false); err == nil {
			t.Errorf("%s: want an error, got %+v", what, m)
		}
	}
	if proc, err = procfs.NewDefaultFS(); err != nil {
		t.Fatal(err)
	}
	if now, err := readMachine(proc, false); err != nil || now.total <= 0 || now.processors == 0 {
		t.Errorf("this machine: %+v, %v", now, err)
	}
}

func TestUsageIsTheDifferenceOfTwoReadings(t *testing.T) {
	// The readings are 3 s apart, and the window has 1 s.
	u := machineCounters{at: 5e9, busy: 350, total: 500, processors: 2, sent: 22}.since(machineCounters{at: 2e9, busy: 200, total: 200, sent: 4}, 1)
	if u.cpu() != 50 || u.sent != 6 {
		t.Errorf("%+v: want 50 %% and 6 packets", u)
	}
}

func FuzzParseNTttcp(f *testing.F) {
	for _, s := range []string{
		"-s -m 1,*,10.0.1.4 -l 128k -t 15", "-r -m 4,0,10.0.0.5 2,1,h -rb 2M -xml f -a 6", "-s -m 1,*,h -n 20k -thr 9 -to 0",
		"-S -M 1,*,h -U -L 1390", "-m ,,,", "-l 9223372036854775807M", "-a -a -xml -xml",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parseNTttcp(strings.Fields(line))
		if err != nil {
			return
		}
		if o.threads() < 1 || o.length < 1 || o.buffers < 1 || o.port < 2 || o.port+o.threads()-1 > 65535 || o.runTime < 0 || o.limit <= 0 {
			t.Errorf("%q was accepted as %+v", line, o)
		}
		if !o.timed && o.buffers > endless/int64(o.length) {
			t.Errorf("%q: %d buffers of %d bytes do not fit", line, o.buffers, o.length)
		}
	})
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *boolean) UnmarshalText(text []byte) error {
	switch string(text) {
	case "True":
		*b = true
	case "False":
		*b = false
	default:
		return fmt.Errorf("%q is neither True nor False", text)
	}
	return nil
}

// Both ends share a namespace here, so acknowledgements are packets of both.
func TestWithoutDelayEachBufferIsAPacket(t *testing.T) {
	received, sent := ntttcpPair(t, "127.0.0.1", "-n 20000 -l 1390 -ndl", "-n 20000 -l 1390 -ndl")
	for end, text := range map[string]string{"sender": sent, "receiver": received} {
		if packets := row(t, text, "Packets Sent"); packets[0] < 40000 || packets[1] < 40000 {
			t.Errorf("%s: %.0f packets sent, %.0f received for 40000 buffers", end, packets[0], packets[1])
		}
	}
}

// A busy CPU starts threads late. The time asked for counts from the start of the last one,
// and from the message to the sender.
func TestTheRequestedTimeBeginsWhenEveryThreadHasStarted(t *testing.T) {
	const late, duration = 80 * time.Millisecond, 100 * time.Millisecond
	c := newCrew()
	for range 2 {
		c.add(&worker{fd: -1, cpu: -1, loop: func(w *worker) {
			for !w.over() {
				time.Sleep(time.Millisecond)
			}
		}})
	}
	cond := &conductor{crew: c, timing: suite.Timing{Duration: duration}, started: func() error {
		for i, w := range c.workers {
			if w.begin.at == 0 {
				t.Errorf("thread %d does not count yet", i)
			}
		}
		time.Sleep(late)
		return nil
	}}
	must.Succeed(t, c.start())
	must.Succeed(t, cond.run(nil))
	must.Succeed(t, c.close())
	for i, w := range c.workers {
		if f, err := w.figures(); err != nil || f.Seconds < (late+duration).Seconds() {
			t.Errorf("thread %d counted for %.3f s (%v), want %v or more", i, f.Seconds, err, late+duration)
		}
	}
}

// On a busy machine its counters are read late. The window must not become longer.
func TestTheWindowDoesNotWaitForTheMachinesCounters(t *testing.T) {
	c := newCrew()
	c.add(&worker{fd: -1, cpu: -1, loop: func(w *worker) {
		for !w.over() {
			w.tally.bytes++
			time.Sleep(time.Millisecond)
		}
	}})
	over := make(chan struct{})
	reading := uint64(0)
	cond := &conductor{crew: c, timing: suite.Timing{Duration: 20 * time.Millisecond}, machine: func() (machineCounters, error) {
		<-over
		reading++
		return machineCounters{sent: 1000 * reading}, nil
	}}
	must.Succeed(t, c.start())
	must.Succeed(t, cond.run(nil))
	close(over)
	must.Succeed(t, c.close())
	if s, err := cond.window(); err != nil || s.machine.sent == 0 || s.machine.at == 0 {
		t.Errorf("window %+v, %v; want the counters of two readings", s, err)
	}
}

// A busy CPU can give a thread no time in the whole window. Its counters are read nevertheless.
func TestAThreadThatGetsNoTimeDoesNotMoveTheWindow(t *testing.T) {
	c := newCrew()
	over := make(chan struct{})
	c.add(&worker{fd: -1, cpu: -1, loop: func(*worker) { <-over }})
	cond := &conductor{crew: c, timing: suite.Timing{Warmup: time.Millisecond, Duration: 20 * time.Millisecond}}
	must.Succeed(t, c.start())
	must.Succeed(t, cond.run(nil))
	close(over)
	must.Succeed(t, c.close())
	f, err := c.workers[0].figures()
	if err != nil || f.Seconds < 0.02 || f.Bytes != 0 {
		t.Errorf("figures %+v (%v), want those of a window of 20 ms without traffic", f, err)
	}
}
