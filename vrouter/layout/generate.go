//go:build ignore

// Generate writes types.go: the types of the eBPF programs' structs. Its arguments are the object
// file and the names of the structs.
package main

import (
	"bytes"
	"go/format"
	"log"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

var initialisms = map[string]string{"id": "ID", "vrf": "VRF", "mac": "MAC", "dmac": "DMAC", "smac": "SMAC", "mtu": "MTU", "vxlan": "VXLAN", "tcp": "TCP", "nat": "NAT"}

// identifier returns the Go name of a C name: next_hop_id is NextHopID.
func identifier(c string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(c, "_") {
		if short, ok := initialisms[word]; ok {
			word = short
		} else if word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		name.WriteString(word)
	}
	return name.String()
}

func main() {
	spec, err := ebpf.LoadCollectionSpec(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	f := btf.GoFormatter{Names: map[btf.Type]string{}, Identifier: identifier}
	var all []btf.Type
	for _, name := range os.Args[2:] {
		var t *btf.Struct
		if err := spec.Types.TypeByName(name, &t); err != nil {
			log.Fatalf("find struct %s: %v", name, err)
		}
		all, f.Names[t] = append(all, t), identifier(name)
		for _, m := range t.Members {
			if array, ok := m.Type.(*btf.Array); ok && strings.HasSuffix(m.Name, "mac") {
				f.Names[array] = "model.MAC"
			}
		}
	}
	var out bytes.Buffer
	out.WriteString("// Code generated from the eBPF programs by generate.go; DO NOT EDIT.\n\npackage layout\n\nimport (\n\"structs\"\n\n\"windtunnel/vrouter/model\"\n)\n")
	for _, t := range all {
		text, err := f.TypeDeclaration(f.Names[t], t)
		if err != nil {
			log.Fatalf("write struct %s: %v", t, err)
		}
		out.WriteString("\n" + text + "\n")
	}
	text, err := format.Source(out.Bytes())
	if err == nil {
		err = os.WriteFile("../layout/types.go", text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
