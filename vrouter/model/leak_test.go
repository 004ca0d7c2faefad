package model

import (
	"testing"

	"windtunnel/internal/must"
)

func TestANetworkImportsRoutesByTargetsInTheOrderOfIDs(t *testing.T) {
	one, two := targets("64512:1")[0], targets("64512:2")[0]
	both := []RouteTarget{one, two}
	s := State{
		Networks: []Network{
			{Name: "high", ID: 3, Export: both, Import: both},
			{Name: "low", ID: 2, Export: both[1:]},
			{Name: "bridge", ID: 1, Forwarding: L2, Export: both, Import: both},
			{Name: "other", ID: 4},
			{Name: "importer", ID: 5, Import: both, Export: both},
		},
		Ports: []Port{{Name: "p", Network: "high", Node: "a"}, {Name: "q", Network: "low", Node: "b"}, {Name: "r", Network: "other", Node: "b"}},
	}
	must.Equal(t, map[string][]string{"high": {"low", "importer"}, "importer": {"low", "high"}}, Leaks(s.Networks))

	var names []string
	for _, n := range s.Around("a").Networks {
		names = append(names, n.Name)
	}
	must.Equal(t, []string{"high", "low", "importer"}, names)
	must.Equal(t, 2, len(s.Around("a").Ports))
}
