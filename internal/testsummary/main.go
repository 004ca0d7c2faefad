// Testsummary prints the results of `go test -json` as one table: how many tests passed,
// failed and were skipped, and for each reason of a skip the command that runs those tests.
//
//	go run ./internal/testsummary out/test/*.json
package main

import (
	"fmt"
	"os"
)

func main() {
	var s summary
	for _, path := range os.Args[1:] {
		if err := s.addFile(path); err != nil {
			fmt.Fprintln(os.Stderr, "testsummary:", err)
			os.Exit(1)
		}
	}
	if err := s.write(os.Stdout); err != nil {
		os.Exit(1)
	}
}
