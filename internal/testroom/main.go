// Testroom runs a test binary in a room: a private mount namespace with an empty /run and an
// empty directory for temporary files. So test binaries that use the same lock and the same
// names of network namespaces run side by side. When a test binary ends or is killed, the
// processes that it started are killed, and its files and the names of its network namespaces
// vanish with the room. `make test` passes testroom to `go test -exec`.
//
// The network namespace is that of the host, because some sysctls exist only there. Process
// numbers are those of the host too, because the lab pins kernel threads and measures the CPU
// time of all processes; but vrouter finds the host's mount namespace at its first process, so
// -pids gives its tests a private process namespace.
//
// Without root it runs the test binary as it is.
//
// With -again, a test binary runs twice: in a room that covers the optional programs of package
// setup, as on a machine without them, and then the skipped tests in a room that covers nothing.
//
//	go test -exec 'bin/testroom -each cmd/windtunnel=4' ./...
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"windtunnel/internal/setup"
)

// inside is the first argument of the process that a room begins with.
const inside = "-inside"

func main() {
	var err error
	if len(os.Args) > 2 && os.Args[1] == inside {
		err = enter(os.Args[2:])
	} else {
		err = run()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(max(exit.ExitCode(), 1))
	case err != nil:
		fmt.Fprintln(os.Stderr, "testroom:", err)
		os.Exit(1)
	}
}

func run() error {
	each := flag.String("each", "", "packages whose tests get a room each, and how many of them run at once, such as cmd/windtunnel=4,lab/host=2")
	long := flag.String("long", "^$", "pattern of the tests that -each starts first")
	pids := flag.String("pids", "", "directories whose packages get a private process namespace, such as cmd/vrouter,vrouter")
	hide := flag.Bool("hide", false, "cover the optional programs of "+setup.File+", so that they are not found")
	again := flag.Bool("again", false, "cover the optional programs, and then run the skipped tests with them")
	flag.Parse()
	if flag.NArg() == 0 {
		return errors.New("which test binary? go test -exec gives it")
	}
	if *again && !slices.ContainsFunc(flag.Args(), func(a string) bool { return strings.HasPrefix(a, "-test.v=") }) {
		return errors.New("-again finds the skipped tests in the output, so go test needs -v or -json")
	}
	if os.Geteuid() != 0 {
		if *hide {
			return errors.New("covering programs needs root")
		}
		return unix.Exec(flag.Arg(0), flag.Args(), os.Environ())
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	r := room{pids: slices.ContainsFunc(strings.Split(*pids, ","), func(d string) bool {
		return d != "" && strings.Contains(dir+"/", "/"+d+"/")
	}), again: *again}
	if *hide || *again {
		r.covers = setup.Installed()
	}
	atOnce, err := atOnce(*each, dir)
	if err != nil {
		return err
	}
	if atOnce > 1 && !lists(flag.Args()) {
		first, err := regexp.Compile(*long)
		if err != nil {
			return err
		}
		commands, err := divide(flag.Args(), first)
		if err != nil {
			return err
		}
		r.runEach(atOnce, commands)
		return nil
	}
	if r.again {
		r.runEach(1, [][]string{flag.Args()})
		return nil
	}
	return r.run(flag.Args(), os.Stdout, os.Stderr)
}

// atOnce returns how many rooms the flag -each wants for the package in a directory; 1 if the
// flag does not name it.
func atOnce(each, dir string) (int, error) {
	for entry := range strings.SplitSeq(each, ",") {
		name, n, _ := strings.Cut(entry, "=")
		if name != "" && strings.HasSuffix(dir, "/"+name) {
			return strconv.Atoi(n)
		}
	}
	return 1, nil
}

// forward passes the signals that end or dump a program on to a process, until stop.
func forward(p *os.Process) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	go func() {
		for s := range signals {
			_ = p.Signal(s) // it may have ended
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
}
