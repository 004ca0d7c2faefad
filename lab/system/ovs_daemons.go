package system

import (
	"fmt"
	"os"
	"path/filepath"

	"windtunnel/lab/space"
)

// ovsRunDir holds a node's database, sockets and process ids: the node's home.
func ovsRunDir(n *Node) string { return space.Home(n.Name) }

// ovsSchema is where Debian and Red Hat keep the description of the database.
const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// ovsEnv keeps Open vSwitch's programs out of the host's directories.
func ovsEnv(n *Node) []string {
	var env []string
	for _, variable := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"} {
		env = append(env, variable+"="+ovsRunDir(n))
	}
	return env
}

func ovsCommand(n *Node, argv ...string) (string, error) { return n.commandWith(ovsEnv(n), argv...) }

// startOVS makes the node's database and starts the server of it and the
// switch; both answer when it returns.
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
		return fmt.Errorf("ready Open vSwitch's database: %w%s", err, n.said("ovsdb-server"))
	}
	return n.start(daemon{
		name: "ovs-vswitchd", env: ovsEnv(n),
		argv:  ovsDaemon(n, "ovs-vswitchd", ovsDatabase(n)),
		ready: ovsAnswers(n, "ovs-vswitchd"),
	})
}

// ovsDaemon is a daemon's argv with its process id and control socket in the
// node's home and its log on stderr, from where it goes to the home as well.
func ovsDaemon(n *Node, name string, args ...string) []string {
	argv := append([]string{name}, args...)
	return append(argv,
		"--pidfile="+filepath.Join(ovsRunDir(n), name+".pid"),
		"--unixctl="+ovsControl(n, name),
		"-vconsole:info", "-vsyslog:off", "-vfile:off")
}

func ovsControl(n *Node, name string) string { return filepath.Join(ovsRunDir(n), name+".ctl") }

// ovsAnswers asks a daemon for its version.
func ovsAnswers(n *Node, name string) func() error {
	return func() error {
		_, err := ovsCommand(n, "ovs-appctl", "--timeout=2", "--target="+ovsControl(n, name), "version")
		return err
	}
}
