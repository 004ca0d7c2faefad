package main

import (
	"os"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

func TestPeersDoesNotBeginBesideRemains(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("creating a namespace's home needs root")
	}
	home := space.Home(space.NamePrefix + "remains")
	must.Succeed(t, os.MkdirAll(home, 0o700))
	t.Cleanup(func() { must.Succeed(t, space.DeleteHome(space.NamePrefix+"remains")) })
	must.Fail(t, (&session{program: "/bin/false"}).peers(), home, "windtunnel lab clean")
}
