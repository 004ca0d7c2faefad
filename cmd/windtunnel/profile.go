package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/lab/experiment"
	"windtunnel/lab/profile"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/profiles"
	"windtunnel/lab/report/text"
)

// profiledBlocks is the default number of blocks with profiled trials.
const profiledBlocks = 3

func profileCommand() *cobra.Command {
	var o runOptions
	var rate int
	cmd := &cobra.Command{
		Use:   "profile SUITE|FILE.yaml",
		Short: "Show where the CPU time goes on each side: tables, flame graphs, pprof files",
		Long: `Run scenarios with a CPU profiler, and as often without it, so that the cost of
the profiler is known. Print a table by category for each side, and write flame
graphs, pprof files and folded stacks. The difference of two scenarios is a flame
graph in report.html.`,
		Example: `  windtunnel profile quick --scenario vxlan/stream
  windtunnel profile quick --scenario bridge/stream,vxlan/stream`,
		Args: cli.Takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rate < 1 {
				return cli.Misuse(fmt.Errorf("--rate %d: choose 1 sample per second or more", rate))
			}
			if err := cli.Misuse(cmp.Or(aboveZero(cmd, "trials", "duration"), nonEmptyLists(cmd))); err != nil {
				return err
			}
			o.command = recorded(cmd, args)
			o.profiling = experiment.Profiling{Rate: rate, Blocks: o.trials}
			return o.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	o.choices(cmd)
	o.cpus.flags(cmd)
	cmd.Flags().IntVar(&o.trials, "trials", profiledBlocks, "Trials of each scenario with the profiler, and as many without it")
	cmd.Flags().IntVar(&rate, "rate", profile.DefaultRate, "Samples per second on each CPU")
	return cmd
}

// writeProfiles prints the tables of a run's profiles and writes their files.
func (s *runner) writeProfiles(r *model.Report, dir string) error {
	if len(r.Profiles) == 0 {
		return nil
	}
	if err := text.Write(s.out, profiles.Document(r), tableOptions(s.out)); err != nil {
		return err
	}
	for _, p := range r.Profiles {
		data, err := folded.Decode(p.Data)
		if err != nil {
			return err
		}
		base := filepath.Join(dir, "profile-"+strings.ReplaceAll(p.Scenario, "/", "-")+"-"+p.Side)
		var b bytes.Buffer
		if err := folded.PProf(data).Write(&b); err != nil {
			return fmt.Errorf("make the pprof file of %s: %w", p.Scenario, err)
		}
		for name, text := range map[string][]byte{base + ".pb.gz": b.Bytes(), base + ".folded": []byte(data.Folded())} {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return fmt.Errorf("write a profile: %w", err)
			}
		}
	}
	_, err := fmt.Fprintf(s.out, "\npprof files and folded stacks: %s\n", filepath.Join(dir, "profile-*"))
	return err
}
