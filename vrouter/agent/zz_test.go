package agent
import ("testing";"time";"context";"windtunnel/vrouter/api";"windtunnel/vrouter/model";"fmt")
func TestZZ(t *testing.T) {
	f := newFleet(t)
	w := newSpace(t, "w")
	a := start(t, f.config("a"))
	_, err := a.client.PutState(context.Background(), f.state(nil))
	must(t, err)
	for i := range 5 {
		got, err := a.client.AddPort(context.Background(), api.PortRequest{Name: fmt.Sprint("web",i), Network: "red", Attach: model.Attachment{Netns: w.name, Interface: fmt.Sprint("eth", i)}})
		must(t, err)
		t.Log(got.Took)
	}
	time.Sleep(time.Second)
}
