package model_test

import (
	"bytes"
	"io"
	"testing"

	. "windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
)

func quick(t testing.TB) *Report {
	t.Helper()
	return Build(reporttest.Sample())
}

func written(t *testing.T, write func(io.Writer, *Report) error, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func tabled(t *testing.T, r *Report, o text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Write(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
