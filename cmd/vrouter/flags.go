package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/model"
)

// list is the value of a flag that can be repeated and takes values separated by commas.
type list[T any] struct {
	items *[]T
	parse func(string) (T, error)
}

func (l list[T]) Type() string   { return "strings" }
func (l list[T]) String() string { return "" } // these flags have no default

// Set adds the values of a text. An empty text removes all values.
func (l list[T]) Set(text string) error {
	if text == "" {
		*l.items = nil
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		item, err := l.parse(word)
		if err != nil {
			return err
		}
		*l.items = append(*l.items, item)
	}
	return nil
}

func listFlag[T any](cmd *cobra.Command, items *[]T, parse func(string) (T, error), name, usage string) {
	cmd.Flags().Var(list[T]{items, parse}, name, usage)
}

func encapsulationFlag(cmd *cobra.Command, all *[]model.Encapsulation) {
	parse := func(word string) (model.Encapsulation, error) { return model.Encapsulation(word), nil }
	listFlag(cmd, all, parse, "encapsulation", "Encapsulations of the node, preferred first: direct, vxlan, mpls-udp, mpls-gre (repeatable; default all)")
	cmd.RegisterFlagCompletionFunc("encapsulation", words("direct", "vxlan", "mpls-udp", "mpls-gre"))
}

func parseAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("%q is not an IP address; write it without a prefix length", text)
	}
	return a, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is not a prefix; write one such as 10.1.0.0/16", text)
	}
	return p, nil
}
