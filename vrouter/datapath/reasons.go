package datapath

import (
	_ "embed"
	"regexp"
	"strings"
)

// Reason is why packets are dropped.
type Reason struct {
	Number  uint32
	Name    string // "no_route"
	Meaning string // for people
}

//go:embed bpf/drop.list.h
var dropList string

var dropLine = regexp.MustCompile(`(?m)^DROP\((\w+), "(.*)"\)$`)

var reasons = func() (all []Reason) {
	for i, m := range dropLine.FindAllStringSubmatch(dropList, -1) {
		all = append(all, Reason{Number: uint32(i), Name: strings.ToLower(m[1]), Meaning: m[2]})
	}
	return all
}()

// Reasons are all drop reasons by number; 0 means not dropped.
func Reasons() []Reason { return reasons }

// ReasonOf names a reason; unknown numbers come from a newer data path.
func ReasonOf(number uint32) Reason {
	if int(number) < len(reasons) {
		return reasons[number]
	}
	return Reason{Number: number, Name: "unknown", Meaning: "a reason that this program does not know"}
}
