// Package dns answers the DNS queries of workloads. Names of the ports of their network come from the
// desired state; queries for all other names are forwarded to the node's resolvers.
package dns

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	ttl             = 5               // TTL of answers about ports, in seconds: a port can get another address
	resolverTimeout = 2 * time.Second // for the answer of one resolver
)

// Forwarder answers queries, and forwards those for names outside a zone.
type Forwarder struct {
	Dial      func(ctx context.Context, resolver netip.Addr) (net.Conn, error) // opens a UDP connection to port 53
	Resolvers []netip.Addr                                                     // empty: those of /etc/resolv.conf
}

// Zone has the names and addresses of the ports of a network.
type Zone struct {
	Name string                                              // of the network; a port has the name PORT.NAME
	Port func(name string) (addresses []netip.Addr, ok bool) // returns the addresses of a port; name is in lower case
}

// Answer returns the answer to a query, of at most size bytes; nil: query is not a DNS query.
func (f *Forwarder) Answer(ctx context.Context, query []byte, z Zone, size int) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	questions, err := p.AllQuestions()
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}, Questions: questions}
	switch {
	case err != nil || len(questions) != 1:
		reply.Questions, reply.RCode = nil, dnsmessage.RCodeFormatError
	case h.OpCode != 0:
		reply.RCode = dnsmessage.RCodeNotImplemented
	default:
		name := strings.ToLower(strings.TrimSuffix(questions[0].Name.String(), "."))
		zone := strings.ToLower(z.Name)
		if port, in := strings.CutSuffix(name, "."+zone); in || name == zone {
			z.answer(&reply, port, in)
			break
		}
		if answer, err := f.forward(ctx, query, questions[0], size); err == nil && len(answer) <= size {
			return answer
		} else if err != nil {
			reply.RCode = dnsmessage.RCodeServerFailure
		} else {
			reply.Truncated = true
		}
	}
	packed, err := reply.Pack()
	if err == nil && len(packed) > size {
		reply.Answers, reply.Truncated = nil, true
		packed, err = reply.Pack()
	}
	if err != nil {
		return nil
	}
	return packed
}

// answer adds the addresses of a port to reply. isPort is false if the query is for the name of the network.
func (z Zone) answer(reply *dnsmessage.Message, port string, isPort bool) {
	reply.Authoritative = true
	if !isPort {
		return
	}
	addresses, ok := z.Port(port)
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
		return
	}
	q := reply.Questions[0]
	for _, a := range addresses {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}}
		if a.Is4() {
			r.Header.Type, r.Body = dnsmessage.TypeA, &dnsmessage.AResource{A: a.As4()}
		} else {
			r.Header.Type, r.Body = dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: a.As16()}
		}
		if q.Type == r.Header.Type || q.Type == dnsmessage.TypeALL {
			reply.Answers = append(reply.Answers, r)
		}
	}
}

// forward returns the answer of the first resolver that answers. Of an answer with more than size bytes,
// it returns more than size bytes.
func (f *Forwarder) forward(ctx context.Context, query []byte, q dnsmessage.Question, size int) ([]byte, error) {
	resolvers := f.Resolvers
	if len(resolvers) == 0 {
		resolvers = systemResolvers()
	}
	err := errors.New("the node has no resolver")
	for _, r := range resolvers {
		var answer []byte
		if answer, err = f.ask(ctx, r, query, q, size); err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// ask sends a query to a resolver and returns its answer, as forward does. The query gets a random id and
// source port, which an attacker must guess; ask ignores answers with another id or question (RFC 5452).
func (f *Forwarder) ask(ctx context.Context, resolver netip.Addr, query []byte, q dnsmessage.Question, size int) ([]byte, error) {
	conn, err := f.Dial(ctx, resolver)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(resolverTimeout))
	id := uint16(rand.Uint32())
	sent := append(binary.BigEndian.AppendUint16(nil, id), query[2:]...)
	if _, err := conn.Write(sent); err != nil {
		return nil, err
	}
	for buffer := make([]byte, size+1); ; {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		answer := buffer[:n]
		var p dnsmessage.Parser
		h, err := p.Start(answer)
		if err != nil || h.ID != id || !h.Response {
			continue
		}
		if got, err := p.Question(); err == nil && strings.EqualFold(got.Name.String(), q.Name.String()) && got.Type == q.Type && got.Class == q.Class {
			copy(answer, query[:2])
			return answer, nil
		}
	}
}

// systemResolvers returns the resolvers of /etc/resolv.conf.
func systemResolvers() (all []netip.Addr) {
	file, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) > 1 && words[0] == "nameserver" {
			if a, err := netip.ParseAddr(words[1]); err == nil {
				all = append(all, a)
			}
		}
	}
	return all
}
