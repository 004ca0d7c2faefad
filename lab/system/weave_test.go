package system

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func TestWeavesMTULeavesRoomForItsEncapsulation(t *testing.T) {
	must.Equal(t, 1438, MTU(Weave{}, 1500))
	must.Succeed(t, Supports(Weave{}, suite.TwoNodes, suite.Fabric{Links: 2}))
}

func TestOfTwoWeaveRoutersOneConnects(t *testing.T) {
	n := &Node{Index: 1, Name: "wt-x-b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}}
	got := strings.Join(Weave{}.argv(n, "/h", "/h/weave.sock")[1:], " ")
	want := "--name=02:77:65:61:76:01 --nickname=wt-x-b --host=192.0.2.2 --weave-bridge=br0 --no-fastdp" +
		" --no-dns --docker-api= --no-discovery --http-addr=/h/weave.sock --db-prefix=/h/weave"
	must.Equal(t, want, got)
	must.Equal(t, []string{"192.0.2.1"}, weavePeers(n))
}

// The connections of one router of four as weaver 2.6.5 prints them. The last is not established.
const weaveStatus = `<- 172.31.0.2:40273      established sleeve 02:77:65:61:76:01(wt-lab-b) mtu=1438
-> 172.31.0.3:6783       established sleeve 02:77:65:61:76:02(wt-lab-c) mtu=1438
-> 172.31.0.4:6783       retrying    dial tcp4 :0->172.31.0.4:6783: connect: connection refused
`

func TestWeaveIsUpWhenAllNodesAreConnectedWithThePathsMTU(t *testing.T) {
	must.Succeed(t, weaveConnected(weaveStatus, 2, 1438))
	for say, err := range map[string]error{
		"2 of 3 other nodes are connected with a path MTU of 1438": weaveConnected(weaveStatus, 3, 1438),
		"0 of 2 other nodes are connected with a path MTU of 1376": weaveConnected(weaveStatus, 2, 1376),
		"0 of 1 other nodes": weaveConnected("", 1, 1438),
	} {
		must.Fail(t, err, say)
	}
}

func TestAWeaveRouterThatCannotStartHasAReasonAndLeavesNoRules(t *testing.T) {
	if weaveProgram.Path() == "" {
		t.Skip("weaver is not installed; get it with: " + weaveProgram.Remedy())
	}
	n := loneNode(t)
	listen(t, n, 6783)
	t.Cleanup(func() { assertNoRules(t, n) }) // after Detach
	must.Fail(t, attach(t, Weave{}, n), "weaver ended at once", "address already in use")
}
