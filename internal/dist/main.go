// Command dist builds a release: static programs, Debian packages and container images for
// amd64 and arm64, a list of the Go modules in each program (SBOM, CycloneDX), and SHA256SUMS.
// The same commit and the same version of Go give the same bytes in every directory.
//
//	make dist
//	make image
//	cd internal/dist && go run . -o FOLDER
//
// This is a separate module, so that the libraries that write packages and images are no
// dependencies of the programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// options of a release.
type options struct {
	root          string   // folder of the repository
	out           string   // folder to write to
	images        string   // folder for the programs' images; if set, nothing else is built
	given         string   // revision; "": git describe
	maintainer    string   // of the Debian packages, as "Name <address>"
	architectures []string // as Go names them
}

// supported are the architectures that dist can build for.
var supported = []string{"amd64", "arm64"}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "../..", "`folder` of the repository")
	flag.StringVar(&o.out, "o", "../../out/dist", "`folder` to write to; a former release there is deleted")
	flag.StringVar(&o.images, "images", "", "`folder`: write only the images, for one architecture")
	flag.StringVar(&o.given, "revision", "", "`revision` that the programs print (default: git describe)")
	flag.StringVar(&o.maintainer, "maintainer", "Windtunnel maintainers <maintainers@windtunnel.invalid>", "maintainer of the Debian packages, as `\"Name <address>\"`")
	architectures := flag.String("arch", "", "`list` of architectures (default: "+strings.Join(supported, ",")+"; with -images that of this machine)")
	flag.Parse()
	switch {
	case *architectures != "":
		o.architectures = strings.Split(*architectures, ",")
	case o.images != "":
		o.architectures = []string{runtime.GOARCH}
	default:
		o.architectures = supported
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	names, err := checked(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
	for _, name := range names {
		fmt.Println(name)
	}
}

func checked(ctx context.Context, o options) ([]string, error) {
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q; `go run . -help` lists the flags", flag.Arg(0))
	}
	for _, arch := range o.architectures {
		if !slices.Contains(supported, arch) {
			return nil, fmt.Errorf("-arch %s: unknown architecture %q; choose from %s", strings.Join(o.architectures, ","), arch, strings.Join(supported, ", "))
		}
	}
	names, err := build(ctx, o)
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return names, err
}

// build builds a release or images, and returns the paths of the files.
func build(ctx context.Context, o options) (paths []string, err error) {
	if o.images != "" {
		if len(o.architectures) != 1 {
			return nil, fmt.Errorf("-images builds for one architecture, but -arch names %d; name one", len(o.architectures))
		}
		return runImages(ctx, o)
	}
	names, err := run(ctx, o)
	for _, name := range names {
		paths = append(paths, filepath.Join(o.out, name))
	}
	return paths, err
}
