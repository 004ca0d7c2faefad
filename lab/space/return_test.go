package space

import "testing"

func TestTheSettingsOfAVanishedDeviceAreReportedOnce(t *testing.T) {
	host, node := lender(t)
	run(t, host, `
echo 2 > /proc/sys/net/ipv4/conf/data/rp_filter
ip route add 10.2.0.0/16 via 10.1.0.9 dev data metric 77 initcwnd 7
ip neighbour add 10.1.0.9 lladdr 02:00:00:00:00:09 dev data nud permanent
ip neighbour add proxy 10.1.0.7 dev data
ip address add 10.8.0.1 peer 10.8.0.2/32 dev data`)
	lend(t, host, node)
	run(t, node, "ip link delete data")
	assertNames(t, remove(host, node), "vanished from network namespace "+node.Name, "\tip link set data mtu 1400 up\n", "\tsysctl -w net/ipv4/conf/data/rp_filter='2'\n",
		"\tip address add 10.1.0.1/24 dev data\n", "\tip address add fd00:1::1/64 dev data\n", "\tip address add 10.8.0.1 peer 10.8.0.2/32 dev data\n",
		"\tip neighbour add 10.1.0.9 lladdr 02:00:00:00:00:09 dev data nud permanent\n", "\tip neighbour add proxy 10.1.0.7 dev data\n",
		"\tip route add 10.2.0.0/16 via 10.1.0.9 metric 77 dev data # and with these attributes of linux/rtnetlink.h: 8=08000b0007000000")
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
	if err := remove(host, node); err != nil {
		t.Error(err)
	}
	assertState(t, host, before)
	assertRemoved(t, host, node)
}

func TestARouteThatCannotBeRestoredIsReportedOnce(t *testing.T) {
	host, node := lender(t)
	run(t, host, `
ip address add 10.9.0.1/32 dev lo
ip route add 10.2.0.0/16 dev data src 10.9.0.1
ip route add 10.3.0.0/16 via 10.1.0.9`)
	lend(t, host, node)
	run(t, host, "ip address delete 10.9.0.1/32 dev lo")
	assertNames(t, remove(host, node), "device data: invalid argument", "restore it by hand: `ip route add 10.2.0.0/16 dev data #", "7=0a090001")
	if routes := run(t, host, "ip route"); routes != "10.1.0.0/24 dev data proto kernel scope link src 10.1.0.1 \n10.3.0.0/16 via 10.1.0.9 dev data \n" {
		t.Errorf("routes:\n%s", routes)
	}
	assertRemoved(t, host, node)
}

func TestADamagedLoanHasARemedy(t *testing.T) {
	host, node := lender(t)
	lend(t, host, node)
	run(t, host, "echo {} > "+Home(node.Name)+"/good; mv "+Home(node.Name)+"/"+loanFile+" "+Home(node.Name)+"/good; echo '{' > "+Home(node.Name)+"/"+loanFile)
	assertNames(t, remove(host, node), "the file "+Home(node.Name)+"/"+loanFile+" has the name and the settings")
	run(t, host, "mv "+Home(node.Name)+"/good "+Home(node.Name)+"/"+loanFile)
	if err := remove(host, node); err != nil {
		t.Error(err)
	}
	assertRemoved(t, host, node)
}

// A run can be killed after it recorded a device and before it moved the device.
func TestADeviceThatWasNotMovedKeepsItsSettings(t *testing.T) {
	host, node := lender(t)
	run(t, host, `
ip route add 10.2.0.0/16 via 10.1.0.9 dev data; ip route append 10.2.0.0/16 via 10.1.0.8 dev data
ip -6 route add fd00:4::/64 via fd00:1::9 dev data
ip neighbour add proxy 10.1.0.7 dev data`)
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
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(host, node); err != nil {
		t.Error(err)
	}
	assertState(t, host, before)
	assertRemoved(t, host, node)
}
