package main

import (
	"strings"
	"unsafe"

	"windtunnel/lab/results"
)

// hidePasswords overwrites the passwords of URLs in the command line of this process, which
// every user of the machine can read with ps, and returns the arguments as they were. args
// must be elements of os.Args: the Go runtime keeps them in the memory that ps shows.
func hidePasswords(args []string) []string {
	given := make([]string, len(args))
	for i, arg := range args {
		given[i] = strings.Clone(arg)
		if hidden := results.HidePassword(given[i]); hidden != given[i] {
			copy(unsafe.Slice(unsafe.StringData(arg), len(arg)), hidden)
		}
	}
	return given
}
