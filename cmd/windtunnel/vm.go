package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"

	"windtunnel/lab/suite"
	"windtunnel/lab/tool"
	"windtunnel/lab/vm/image"
	"windtunnel/lab/vm/kernel"
)

func vmFetch() *cobra.Command {
	return &cobra.Command{
		Use:   "fetch [PACKAGE]",
		Short: "Download Debian's kernel for VMs into the user's cache; nothing is installed",
		Args:  cli.Takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pkg := kernel.Package
			if len(args) == 1 {
				pkg = args[0]
			}
			k, err := kernel.Fetch(cmd.Context(), pkg)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "VMs boot kernel %s\n  image    %s\n  modules  %s\n", k.Release, k.Image, k.Modules)
			return nil
		},
	}
}

func vmBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build [TOOL…]",
		Short: "Build the file system that VMs boot, with the programs of these tools (a run builds it if necessary)",
		RunE: func(cmd *cobra.Command, args []string) error {
			var programs []string
			for _, name := range args {
				t, ok := tool.ByName(name)
				if !ok {
					return fmt.Errorf("there is no tool %q; %s", name, suite.Suggest(name, "tools", tool.Names()))
				}
				for _, p := range t.Programs() {
					programs = append(programs, p.Name)
				}
			}
			k, err := kernel.Find()
			if err != nil {
				return err
			}
			cache, err := kernel.Cache()
			if err != nil {
				return err
			}
			path, err := image.Built(image.Spec{Kernel: k, Init: "/proc/self/exe", Programs: programs}, cache)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "kernel %s\nimage  %s\n", k.Image, path)
			return nil
		},
	}
}
