// Package suites has the suites that are part of the lab.
package suites

import (
	"embed"
	"fmt"
	"strings"
)

//go:generate go run generate.go

//go:embed *.yaml
var files embed.FS

// Names lists the suites in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("suites: the embedded folder cannot be read: " + err.Error()) // it is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Read returns the YAML of a suite. The error lists the existing suites.
func Read(name string) ([]byte, error) {
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no suite %q; choose one of %s, or give the path of a file that ends in .yaml", name, strings.Join(Names(), ", "))
	}
	return data, nil
}
