package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/lab/serve"
)

// serveOptions are the flags of `windtunnel serve`.
type serveOptions struct {
	db, listen, tokenFile string
	hosts                 []string
}

func serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show the stored runs in a browser: reports, comparisons, trends, runs in progress",
		Long: `Show the stored runs in a browser: the list of runs, their reports, comparisons,
trends, and runs in progress. The server only reads the store, after the migration of
a store of an older windtunnel. Its pages need nothing from other hosts. /metrics has
the newest figures for Prometheus, and /api/runs the list of runs as JSON.

The server listens on the loopback address. On any other address each browser and
program needs a token: the address with the token is printed, or the token is in
the file of --token-file. Ctrl-C ends the server.`,
		Example: `  windtunnel serve
  windtunnel serve --listen 127.0.0.1:9000 --db results.db
  windtunnel serve --listen :8420 --token-file /etc/windtunnel/token --host lab.example.net`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := nonEmptyLists(cmd); err != nil {
				return cli.Misuse(err)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8420", "Address and port to listen on; an address other than loopback needs a token")
	f.Var((*nonEmpty)(&o.tokenFile), "token-file", "File with the token of requests (default: no token on loopback, else a generated one)")
	f.StringSliceVar(&o.hosts, "host", nil, "More host names under which browsers reach the server, separated by commas, such as the name of a proxy")
	dbFlag(cmd, &o.db)
	return cmd
}

func (o *serveOptions) run(ctx context.Context, out io.Writer) error {
	store, err := openStore(o.db, true)
	if err != nil {
		return err
	}
	defer store.Close()
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return cli.Misuse(fmt.Errorf("--listen %s: %w; give an address and a port, such as 127.0.0.1:8420", o.listen, err))
	}
	for _, name := range o.hosts {
		if name == "" || strings.ContainsAny(name, ":/ ") {
			return cli.Misuse(fmt.Errorf("--host %s: give a host name without a port, such as lab.example.net", name))
		}
	}
	token := ""
	if o.tokenFile != "" {
		if token, err = serve.ReadToken(o.tokenFile); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w; choose another address or port", o.listen, err)
	}
	defer l.Close()
	place, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return errors.New("listen: the address is not a TCP address")
	}
	at := url.URL{Scheme: "http", Host: place.String(), Path: "/"}
	names := append([]string{host}, o.hosts...)
	if !place.IP.IsLoopback() && token == "" {
		token = serve.NewToken()
		at.RawQuery = url.Values{"token": {token}}.Encode()
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
		if place.IP.IsUnspecified() {
			at.Host = net.JoinHostPort(name, fmt.Sprint(place.Port))
		}
	}
	fmt.Fprintf(out, "%s\nserves %s; Ctrl-C ends the server\n", &at, store.Path())
	return serve.New(serve.Options{Store: store, Token: token, Hosts: names}).Serve(ctx, l)
}
