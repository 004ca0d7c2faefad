package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"

	"windtunnel/lab/profile"
	"windtunnel/lab/profile/folded"
)

// ProfileStart begins to sample the node's CPUs. It discards a profile in progress.
func (s *Service) ProfileStart(args profile.Config, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.abandonProfile(); err != nil {
		return err
	}
	var err error
	s.sampler, err = profile.Start(args)
	return err
}

// ProfileStop ends sampling and makes the profile of the window. Programs that the
// agent started, and their children, count as the tool.
func (s *Service) ProfileStop(w profile.Window, reply *string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sampler == nil {
		return errors.New("the CPU profiler does not run on this node")
	}
	cast := profile.Cast{Observers: observers()}
	for _, p := range s.processes {
		if pid := p.PID(); pid > 0 {
			cast.Tools = append(cast.Tools, pid)
		}
	}
	cast.Tools = append(cast.Tools, s.elsewhere...)
	for _, g := range s.guests { // tools run in the guests
		cast.Tools = append(cast.Tools, g.vm.PID())
	}
	sampler := s.sampler
	s.sampler = nil
	p, err := sampler.Stop(w, cast)
	if err != nil {
		return err
	}
	*reply, err = folded.Encode(p)
	return err
}

// abandonProfile discards a profile in progress. The caller holds mu.
func (s *Service) abandonProfile() error {
	if s.sampler == nil {
		return nil
	}
	sampler := s.sampler
	s.sampler = nil
	return sampler.Abandon()
}

// observers returns the PIDs of this process and of its ancestors that run the same
// program. These ancestors are the engine.
func observers() []int {
	pids := []int{os.Getpid()}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return pids
	}
	for pid := os.Getppid(); pid > 1; pid = parentOf(pid) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns the PID of a process's parent; 0 if the process has ended.
func parentOf(pid int) int {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := p.Stat() // after an error PPID is 0
	return stat.PPID
}

// ProfileStart begins to sample the node's CPUs.
func (c *Client) ProfileStart(ctx context.Context, args profile.Config) error {
	return c.call(ctx, "ProfileStart", args, &struct{}{})
}

// ProfileStop ends sampling and returns the profile of the window.
func (c *Client) ProfileStop(ctx context.Context, w profile.Window) (*folded.Profile, error) {
	data, err := ask[string](ctx, c, "ProfileStop", w)
	if err != nil {
		return nil, err
	}
	p, err := folded.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.who, err)
	}
	return p, nil
}
