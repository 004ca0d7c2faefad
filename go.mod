module windtunnel

go 1.26
