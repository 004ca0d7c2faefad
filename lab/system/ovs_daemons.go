package system

import (
	"fmt"
	"os"
	"path/filepath"

	"windtunnel/lab/space"
)

// ovsSchema is the path of the database schema in Debian and Red Hat.
const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// ovsEnv keeps Open vSwitch's programs out of the host's directories.
func ovsEnv(n *Node) []string {
	var env []string
	for _, variable := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"} {
		env = append(env, variable+"="+space.Home(n.Name))
	}
	return env
}

func ovsCommand(n *Node, argv ...string) (string, error) { return n.commandWith(ovsEnv(n), argv...) }

// startOVS creates the node's database, and starts ovsdb-server and ovs-vswitchd. It
// returns when both answer.
func startOVS(n *Node) error {
	dir, err := n.home()
	if err != nil {
		return err
	}
	database := filepath.Join(dir, "conf.db")
	if _, err := os.Stat(ovsSchema); err != nil {
		return fmt.Errorf("find Open vSwitch's schema; install openvswitch-switch: %w", err)
	}
	if _, err := ovsCommand(n, "ovsdb-tool", "create", database, ovsSchema); err != nil {
		return fmt.Errorf("make Open vSwitch's database: %w", err)
	}
	err = n.start(daemon{
		name: "ovsdb-server", env: ovsEnv(n),
		argv:  ovsDaemon(n, "ovsdb-server", database, "--remote=punix:"+filepath.Join(dir, "db.sock")),
		ready: ovsAnswers(n, "ovsdb-server"),
	})
	if err != nil {
		return err
	}
	if _, err := ovsCommand(n, "ovs-vsctl", "--db="+ovsDatabase(n), "--timeout=8", "--no-wait", "init"); err != nil {
		return fmt.Errorf("initialise Open vSwitch's database: %w%s", err, n.lastOutput("ovsdb-server"))
	}
	return n.start(daemon{
		name: "ovs-vswitchd", env: ovsEnv(n),
		argv:  ovsDaemon(n, "ovs-vswitchd", ovsDatabase(n)),
		ready: ovsAnswers(n, "ovs-vswitchd"),
	})
}

// ovsDaemon returns a daemon's command line. Its process ID and control socket are in
// the node's home. Its log goes to stderr, which is stored in the home as well.
func ovsDaemon(n *Node, name string, args ...string) []string {
	argv := append([]string{name}, args...)
	return append(argv,
		"--pidfile="+filepath.Join(space.Home(n.Name), name+".pid"),
		"--unixctl="+ovsControl(n, name),
		"-vconsole:info", "-vsyslog:off", "-vfile:off")
}

func ovsControl(n *Node, name string) string { return filepath.Join(space.Home(n.Name), name+".ctl") }

// ovsAnswers asks a daemon for its version.
func ovsAnswers(n *Node, name string) func() error {
	return func() error {
		_, err := ovsCommand(n, "ovs-appctl", "--timeout=2", "--target="+ovsControl(n, name), "version")
		return err
	}
}
