// Command vrouter-cni has only vrouter's CNI plugin. Container runtimes start a plugin several times for each container.
// The program vrouter is the same plugin if CNI_COMMAND is set, but needs several times as much CPU time to start.
package main

import "windtunnel/vrouter/cni"

// revision is set by the linker to the git revision that was built.
var revision = "unknown"

func main() { cni.Main("vrouter-cni (" + revision + "), a CNI plugin") }
