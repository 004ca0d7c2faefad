package system

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// tokenGiver is a server on the first node. Over the fabric it sends the other nodes
// the token with which they join the swarm. It ends when every node has the token.
type tokenGiver struct {
	listener net.Listener
	token    string
	missing  map[netip.Addr]bool
}

const (
	tokenPort  = 2376
	tokenWait  = 10 * time.Second // maximum wait of the first node for the others, and of the others for the token
	tokenAsk   = 50 * time.Millisecond
	tokenBytes = 1 << 10 // maximum length; a token has about 100 bytes
)

// giveToken listens at an address for connections of the other nodes.
func giveToken(at netip.Addr, others []netip.Addr, token string) (*tokenGiver, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(at, tokenPort).String())
	if err != nil {
		return nil, fmt.Errorf("listen for the nodes that join the swarm: %w", err)
	}
	g := &tokenGiver{l, token, map[netip.Addr]bool{}}
	for _, o := range others {
		g.missing[o] = true
	}
	return g, nil
}

// serve returns when every node has the token.
func (g *tokenGiver) serve(wait time.Duration) error {
	defer g.listener.Close()
	deadline := time.Now().Add(wait)
	if err := g.listener.(*net.TCPListener).SetDeadline(deadline); err != nil {
		return err
	}
	for len(g.missing) > 0 {
		c, err := g.listener.Accept()
		if err != nil {
			return fmt.Errorf("nodes %v did not ask for the swarm's token within %v: their dockerd did not start, or they do not reach %s: %w", slices.Collect(maps.Keys(g.missing)), wait, g.listener.Addr(), err)
		}
		g.answer(c, deadline)
	}
	return nil
}

// answer sends the token to a node of the testbed. A node that received only a part
// of the token connects again.
func (g *tokenGiver) answer(c net.Conn, deadline time.Time) {
	defer c.Close()
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil || !g.missing[from.Addr().Unmap()] {
		return
	}
	if c.SetDeadline(deadline) != nil {
		return
	}
	if _, err := io.WriteString(c, g.token+"\n"); err == nil {
		delete(g.missing, from.Addr().Unmap())
	}
}

// askToken connects from address own to the first node and reads the token. It
// retries until it has the token.
func askToken(own, first netip.Addr, wait time.Duration) (string, error) {
	deadline := time.Now().Add(wait)
	dialer := net.Dialer{Deadline: deadline, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(own, 0))}
	to := netip.AddrPortFrom(first, tokenPort).String()
	for {
		token, err := askTokenOnce(&dialer, to, deadline)
		if err == nil {
			return token, nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("the first node sent no token for its swarm within %v, probably because its dockerd did not start: %w", wait, err)
		}
		time.Sleep(tokenAsk)
	}
}

func askTokenOnce(dialer *net.Dialer, to string, deadline time.Time) (string, error) {
	c, err := dialer.Dial("tcp", to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(c, tokenBytes))
	if err != nil {
		return "", err
	}
	token, whole := strings.CutSuffix(string(text), "\n")
	if !whole || token == "" {
		return "", errors.New("the token is truncated")
	}
	return token, nil
}
