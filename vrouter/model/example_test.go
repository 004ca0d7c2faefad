package model_test

import (
	"fmt"

	"windtunnel/vrouter/model"
)

const state = `nodes:
  - {name: a, underlay: [192.0.2.1]}
  - {name: b, underlay: [192.0.2.2]}
networks:
  - {name: red, id: 7, subnets: [10.1.0.0/16]}
ports:
  - {name: web, network: red, node: a, mac: "02:00:00:00:00:0a", ips: [10.1.0.10]}
  - {name: db, network: red, node: b, mac: "02:00:00:00:00:0b", ips: [10.1.0.11]}
`

// Parse reads a state as it is written, and WithDefaults fills in the rest. A network's ID is also the number of its
// VRF, and its label is 16 + 2·ID, so that all nodes compute the same one.
func ExampleState_WithDefaults() {
	s, err := model.Parse("state.yaml", []byte(state))
	if err != nil {
		fmt.Println(err)
		return
	}
	s = s.WithDefaults()
	for _, n := range s.Nodes {
		fmt.Println("node", n.Name, n.Underlay, n.Encapsulations)
	}
	for _, n := range s.Networks {
		fmt.Println("network", n.Name, n.Subnets, n.Forwarding, "label", n.Label(), "vni", n.VNI, "gateway", model.GatewayAddress(n.Subnets[0]))
	}
	// Output:
	// node a [192.0.2.1] [direct vxlan mpls-udp mpls-gre]
	// node b [192.0.2.2] [direct vxlan mpls-udp mpls-gre]
	// network red [10.1.0.0/16] l3 label 30 vni 7 gateway 10.1.0.1
}

// An error in a file names the line, the column and the remedy.
func ExampleParse_mistakes() {
	_, err := model.Parse("state.yaml", []byte("networks:\n  - {name: red, id: 7, subnet: [10.1.0.0/16]}\n"))
	fmt.Println(err)
	// Output:
	// state.yaml:2:24: unknown field "subnet"; did you mean "subnets"?
}

// Validate names the objects that contradict each other.
func ExampleState_Validate() {
	s, err := model.Parse("state.yaml", []byte(state+"  - {name: cache, network: red, node: b, mac: \"02:00:00:00:00:0c\", ips: [10.1.0.11]}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.WithDefaults().Validate())
	// Output:
	// port "cache": ips: 10.1.0.11 is already used by port "db"; choose another
}
