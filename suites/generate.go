//go:build ignore

// Generate writes schema.json, with which editors check suites.
package main

import (
	"log"
	"os"

	"windtunnel/lab/suite"
)

func main() {
	if err := os.WriteFile("schema.json", suite.Schema(), 0o644); err != nil {
		log.Fatalf("write the schema of the suite language: %v; run go generate in the folder suites, and make it writable", err)
	}
}
