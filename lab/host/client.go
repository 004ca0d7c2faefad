package host

import (
	"context"

	"windtunnel/lab/agent"
	"windtunnel/lab/space"
)

// Client calls the service of a machine.
type Client struct{ *agent.Client }

// Survey describes the machine.
func (c Client) Survey(ctx context.Context, args SurveyArgs) (*Survey, error) {
	return ask[*Survey](ctx, c, "Survey", args)
}

// FindDevice describes the device with the data addresses.
func (c Client) FindDevice(ctx context.Context, args SurveyArgs) (Device, error) {
	return ask[Device](ctx, c, "FindDevice", args)
}

// Hold takes a lock of the machine.
func (c Client) Hold(ctx context.Context, args HoldArgs) error {
	return c.Call(ctx, serviceName+".Hold", args, &struct{}{})
}

// Clean removes the remains of killed runs, and returns the names of the namespaces that
// it removed.
func (c Client) Clean(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, c, "Clean", struct{}{})
}

// Ping returns an error if the service does not answer.
func (c Client) Ping(ctx context.Context) error {
	return c.Call(ctx, agent.ServiceName+".Ping", struct{}{}, &struct{}{})
}

// Prepare makes a node.
func (c Client) Prepare(ctx context.Context, args PrepareArgs) (space.Settings, error) {
	return ask[space.Settings](ctx, c, "Prepare", args)
}

// Discard removes a node.
func (c Client) Discard(ctx context.Context, name string) error {
	return c.Call(ctx, serviceName+".Discard", name, &struct{}{})
}

// Remove removes the program from the machine.
func (c Client) Remove(ctx context.Context) error {
	return c.Call(ctx, serviceName+".Remove", struct{}{}, &struct{}{})
}

// ask calls a method that has a reply.
func ask[R any](ctx context.Context, c Client, method string, args any) (R, error) {
	reply := new(R)
	if err := c.Call(ctx, serviceName+"."+method, args, reply); err != nil {
		return *new(R), err
	}
	return *reply, nil
}
