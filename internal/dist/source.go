package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is the commit that is built.
type source struct {
	tree     string    // absolute path of the repository
	revision string    // as the programs print it
	time     time.Time // of the commit, or SOURCE_DATE_EPOCH: the time of every file of the release
}

// findSource reads what the caller did not set from git. The length of the abbreviated hash is
// fixed, because git's default depends on the number of objects in the clone. undated permits
// a tree without git history: its time is 1970.
func findSource(ctx context.Context, root, revision string, undated bool) (source, error) {
	tree, err := filepath.Abs(root)
	if err != nil {
		return source{}, err
	}
	if _, err := os.Stat(filepath.Join(tree, "cmd", "vrouter")); err != nil {
		return source{}, fmt.Errorf("-root %s is not the repository: %w", root, err)
	}
	if revision == "" {
		if revision, err = git(ctx, tree, "describe", "--always", "--dirty", "--tags", "--abbrev=12"); err != nil {
			return source{}, fmt.Errorf("find the revision: %w; outside a git repository set -revision and SOURCE_DATE_EPOCH", err)
		}
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		epoch, err = git(ctx, tree, "log", "-1", "--format=%ct")
		if err != nil && undated {
			epoch, err = "0", nil
		}
		if err != nil {
			return source{}, fmt.Errorf("find the time of the commit: %w; outside a git repository set SOURCE_DATE_EPOCH", err)
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970", epoch)
	}
	return source{tree, revision, time.Unix(seconds, 0).UTC()}, nil
}

// git runs git and returns its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// packageVersion returns a program's version as packages have it. A commit with the version's
// tag has the version. Every other commit sorts before it, in the order of the commits' times.
func (s source) packageVersion(program string) string {
	if s.revision == "v"+program {
		return program
	}
	return program + "~" + s.time.Format("20060102150405") + "." + strings.ReplaceAll(s.revision, "-", ".")
}
