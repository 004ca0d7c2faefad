package traffic

import (
	"encoding/binary"
	"math"
	"slices"
	"syscall"

	"windtunnel/lab/suite"
)

// A datagram of headerSize bytes or more begins with its number and its sending time: 8
// bytes each, network byte order. The two highest bits of the number are the sender's
// phase. So the receiver needs no common clock to know which datagrams belong to the
// sender's window. Smaller datagrams have no header and are only counted.
const (
	headerSize  = 16
	phaseShift  = 62
	numberMask  = 1<<phaseShift - 1
	notTraffic  = 3 // phase bits of a greeting, which is not traffic
	recentCount = 1 << 16
)

// imix has the payloads of an Internet mix in bytes, in the order of sending. With IPv4 the Ethernet frames have 64, 594 and
// 1446 bytes; of 12 frames, 7, 4 and 1 have these sizes. The usual simple IMIX has frames of 1518 bytes in place of 1446, but a
// tunnel would fragment them.
var imix = [...]int{18, 548, 18, 18, 548, 18, suite.LargestIMIX, 18, 548, 18, 18, 548}

// imixMean is the mean payload of imix, bytes.
func imixMean() float64 {
	sum := 0
	for _, size := range imix {
		sum += size
	}
	return float64(sum) / float64(len(imix))
}

func putHeader(p []byte, phase int32, number uint64, sent int64) {
	binary.BigEndian.PutUint64(p, uint64(phase)<<phaseShift|number&numberMask)
	binary.BigEndian.PutUint64(p[8:], uint64(sent))
}

func readHeader(p []byte) (phase int32, number uint64, sent int64) {
	first := binary.BigEndian.Uint64(p)
	return int32(first >> phaseShift), first & numberMask, int64(binary.BigEndian.Uint64(p[8:]))
}

// sendDatagrams sends one datagram after another at the configured rate.
func (w *worker) sendDatagrams() {
	headed := len(w.buf) >= headerSize
	paced := w.pace.interval > 0
	for {
		if !paced || w.pace.wait() {
			phase := min(w.stage.phase.Load(), cooling)
			datagram := w.buf
			if w.mixed {
				datagram = w.buf[:imix[w.tally.datagrams%int64(len(imix))]]
			}
			if headed {
				putHeader(datagram, phase, uint64(w.tally.datagrams), now())
			}
			_, e := send(w.fd, datagram, 0)
			if e == 0 {
				w.count(len(datagram))
				if phase == measuring {
					w.marked++
				}
			} else if !w.transient(e) {
				w.datagramFailed()
				if e == syscall.EMSGSIZE {
					w.failed("send a datagram", e)
					return
				}
			}
		}
		if w.over() || w.tally.bytes >= w.limit {
			return
		}
	}
}

// receiveDatagrams receives until the run is stopping and no datagram arrives within the
// socket's timeout.
func (w *worker) receiveDatagrams() {
	size := len(w.buf) - 1 // one more byte shows a datagram that is too long
	headed := size >= headerSize
	silences := int64(0) // timeouts in a row after the senders have ended
	for {
		n, dropped, e := w.overflow.receive(w.fd, w.buf)
		whole := n > 0 && (n == size || w.mixed && slices.Contains(imix[:], n))
		switch {
		case whole && headed && !w.anySize:
			phase, number, sent := readHeader(w.buf)
			if phase != notTraffic {
				w.sequence.take(phase, number, now()-sent)
				w.overflow.take(phase, number, dropped)
				w.count(n)
				w.heard()
			}
		case whole:
			w.sequence.total++
			w.count(n)
			w.heard()
		case n > 0 && w.anySize:
			w.count(n)
			silences = 0
		case e == syscall.EAGAIN && w.seen >= stopping:
			return
		case e == syscall.EAGAIN && w.idleEnd > 0 && w.mayEnd():
			// Datagrams can arrive between the first timeout and the check that the senders have
			// ended, for example while this process is stopped. A second timeout shows that the
			// socket is empty.
			if silences++; silences == 2 {
				w.ended = -silences * w.idleEnd // the silences were not part of the traffic
				return
			}
		case e != 0 && !w.transient(e):
			w.datagramFailed()
		case n == 0 && e == 0 && w.seen >= stopping:
			return // the socket was shut down
		}
		if w.over() || w.tally.bytes >= w.limit {
			return
		}
	}
}

func (w *worker) count(n int) {
	w.tally.datagrams++
	w.tally.bytes += int64(n)
}

// sequence follows the numbers of the datagrams received.
type sequence struct {
	total      int64 // all datagrams, with duplicates
	inWindow   int64 // different datagrams that the sender sent in its window
	reordered  int64 // datagrams of the sender's window that arrived after a later one
	duplicates int64 // repeated datagrams of the sender's window
	jitter     float64
	next       uint64 // one above the highest number seen
	transit    int64  // transit time of the last datagram; the two clocks can differ
	recent     [recentCount / 64]uint64
}

// take counts a datagram. If its number is 65,536 or more below the highest one, it counts
// as reordered, because the receiver no longer knows whether it is a duplicate.
func (s *sequence) take(phase int32, number uint64, transit int64) {
	s.total++
	s.smooth(transit)
	counts := phase == measuring
	if number >= s.next {
		s.forget(number)
		s.next = number + 1
	} else {
		if s.next-number <= recentCount && s.recent[number%recentCount/64]&(1<<(number%64)) != 0 {
			if counts {
				s.duplicates++
			}
			return
		}
		if counts {
			s.reordered++
		}
	}
	s.recent[number%recentCount/64] |= 1 << (number % 64)
	if counts {
		s.inWindow++
	}
}

// forget clears the bits of the numbers from next to number.
func (s *sequence) forget(number uint64) {
	if number-s.next >= recentCount {
		clear(s.recent[:])
		return
	}
	for n := s.next; n <= number; n++ {
		s.recent[n%recentCount/64] &^= 1 << (n % 64)
	}
}

// smooth updates the jitter as in RFC 3550, section 6.4.1. It uses the difference of two
// transit times, which does not contain the offset of the clocks.
func (s *sequence) smooth(transit int64) {
	if s.total > 1 {
		s.jitter += (math.Abs(float64(transit-s.transit)) - s.jitter) / 16
	}
	s.transit = transit
}
