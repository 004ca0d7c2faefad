package space

import (
	"testing"

	"windtunnel/internal/must"
)

func TestTheSettingsOfAVanishedDeviceAreReportedOnce(t *testing.T) {
	host, node := lender(t)
	run(t, host, `
echo 2 > /proc/sys/net/ipv4/conf/data/rp_filter
ip address add 10.8.0.1 peer 10.8.0.2/32 dev data`)
	lend(t, host, node)
	run(t, node, "ip link delete data")
	assertNames(t, remove(host, node), "vanished from network namespace "+node.Name, "\tip link set data mtu 1400\n", "\tsysctl -w net/ipv4/conf/data/rp_filter='2'\n", "\tip link set data up\n",
		"\tip address add 10.1.0.1/24 dev data\n", "\tip address add fd00:1::1/64 dev data", "\tip address add 10.8.0.1 peer 10.8.0.2/32 dev data\n")
	assertRemoved(t, host, node)
}

// The kernel deletes a veth together with its namespace. Meanwhile the machine can have got another
// device of the same name.
func TestAnotherDeviceDoesNotGetTheSettingsOfAVanishedOne(t *testing.T) {
	host, node := lender(t)
	lend(t, host, node)
	run(t, node, "ip link delete data")
	run(t, host, "ip link add name data type veth peer name data-peer")
	before := deviceState(t, host)
	assertNames(t, remove(host, node), "vanished")
	assertState(t, host, before)
	assertRemoved(t, host, node)
}

func TestADeviceWhoseNameIsTakenStaysUntilTheNameIsFree(t *testing.T) {
	host, node := lender(t)
	before := deviceState(t, host)
	lend(t, host, node)
	run(t, host, "ip link add name data type veth peer name data-peer")
	for range 2 {
		assertNames(t, remove(host, node), "another device of this name", "`ip link set data name NEW`", "`windtunnel lab clean --testbed FILE`")
		if _, err := node.Link("data"); err != nil {
			t.Errorf("the device is lost: %v", err)
		}
	}
	run(t, host, "ip link set data name other")
	must.Succeed(t, remove(host, node))
	assertState(t, host, before)
	assertRemoved(t, host, node)
}

func TestADamagedLoanHasARemedy(t *testing.T) {
	host, node := lender(t)
	lend(t, host, node)
	run(t, host, "echo {} > "+Home(node.Name)+"/good; mv "+Home(node.Name)+"/"+loanFile+" "+Home(node.Name)+"/good; echo '{' > "+Home(node.Name)+"/"+loanFile)
	assertNames(t, remove(host, node), "the file "+Home(node.Name)+"/"+loanFile+" has the name and the settings")
	run(t, host, "mv "+Home(node.Name)+"/good "+Home(node.Name)+"/"+loanFile)
	must.Succeed(t, remove(host, node))
	assertRemoved(t, host, node)
}

// A run can be killed after it recorded a device and before it moved the device.
func TestADeviceThatWasNotMovedKeepsItsSettings(t *testing.T) {
	host, node := lender(t)
	before := deviceState(t, host)
	err := host.Do(func() error {
		l, err := host.Link("data")
		if err != nil {
			return err
		}
		b, err := host.describeLoan(l)
		if err != nil {
			return err
		}
		return b.save(node.Name)
	})
	must.Succeed(t, err)
	must.Succeed(t, remove(host, node))
	assertState(t, host, before)
	assertRemoved(t, host, node)
}
