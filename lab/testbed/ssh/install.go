package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/host"
)

// program is the windtunnel program that the hosts get: this program.
type program struct {
	text     []byte
	checksum string // SHA-256, hexadecimal
}

// ownProgram reads the running program, also if its file has been replaced.
func ownProgram() (*program, error) {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("read the windtunnel program: %w", err)
	}
	return &program{text, fmt.Sprintf("%x", sha256.Sum256(text))}, nil
}

// file is the name of the program's file on a host.
func (p *program) file() string { return host.ProgramPrefix + p.checksum[:16] }

// directory prints the directory for the program on a host, and makes it. Only its
// user may write to it: it must not belong to another user.
const directory = `set -eu
command -v sha256sum >/dev/null || { echo "sha256sum is not installed; install coreutils there" >&2; exit 1; }
umask 077
dir=%s
[ -n "$dir" ] || dir=/var/tmp/windtunnel-$(id -u)
[ -d "$dir" ] || { mkdir "$dir" && : >"$dir/` + host.MadeMark + `"; } || [ -d "$dir" ]
[ -O "$dir" ] && [ ! -L "$dir" ] || { echo "$dir belongs to another user; remove it, or set directory in the hosts file" >&2; exit 1; }
`

const survey = directory + `file=%s
echo "$(uname -s) $(uname -m)"
echo "$dir"
[ -x "$dir/$file" ] && sum=$(sha256sum <"$dir/$file") && [ "${sum%%%% *}" = %s ] && echo present || :
`

const receive = directory + `file=%s
new="$dir/$file.new.$$"
trap 'rm -f "$new"' EXIT
cat >"$new"
sum=$(sha256sum <"$new")
[ "${sum%%%% *}" = %s ] || { echo "the copy of the program is damaged" >&2; exit 1; }
chmod 700 "$new"
mv "$new" "$dir/$file"
`

// machines has the names of `uname -m` for GOARCH.
var machines = map[string][]string{"amd64": {"x86_64"}, "arm64": {"aarch64", "arm64"}}

// install copies the program to a host unless the host has it undamaged, and returns its
// path there.
func (p *program) install(ctx context.Context, c *connection, directory string) (string, error) {
	dir, file := phrase.Shell([]string{directory}), p.file()
	out, err := c.run(ctx, fmt.Sprintf(survey, dir, file, p.checksum), strings.NewReader(""))
	if err != nil {
		return "", fmt.Errorf("look for the windtunnel program: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 2 {
		return "", fmt.Errorf("look for the windtunnel program: the host's shell printed %q", out)
	}
	if err := fits(lines[0]); err != nil {
		return "", err
	}
	path := lines[1] + "/" + file
	if len(lines) > 2 {
		return path, nil
	}
	if _, err := c.run(ctx, fmt.Sprintf(receive, dir, file, p.checksum), bytes.NewReader(p.text)); err != nil {
		return "", fmt.Errorf("copy the windtunnel program to %s: %w", lines[1], err)
	}
	return path, nil
}

// fits returns an error if this program cannot run on a host. uname has the host's
// operating system and machine.
func fits(uname string) error {
	system, machine, _ := strings.Cut(uname, " ")
	if system != "Linux" {
		return fmt.Errorf("it runs %s, and the lab needs Linux", system)
	}
	for _, m := range machines[runtime.GOARCH] {
		if m == machine {
			return nil
		}
	}
	return fmt.Errorf("its CPU is %s, and this windtunnel program is for %s; start a windtunnel program that was built for the hosts", machine, runtime.GOARCH)
}
