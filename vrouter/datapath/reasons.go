package datapath

import (
	_ "embed"
	"regexp"
	"strings"
)

// Reason is why packets are dropped, or why direct cannot carry them.
type Reason struct {
	Number  uint32
	Name    string // "no_route"
	Meaning string // for people
}

//go:embed bpf/drop.list.h
var dropList string

//go:embed bpf/fallback.list.h
var fallbackList string

var (
	reasons         = reasonsIn(dropList)
	fallbackReasons = reasonsIn(fallbackList)
)

var reasonLine = regexp.MustCompile(`(?m)^[A-Z]+\((\w+), "(.*)"\)$`)

// reasonsIn returns the reasons in a list file of the programs.
func reasonsIn(list string) (all []Reason) {
	for i, m := range reasonLine.FindAllStringSubmatch(list, -1) {
		all = append(all, Reason{Number: uint32(i), Name: strings.ToLower(m[1]), Meaning: m[2]})
	}
	return all
}

// Reasons returns all drop reasons by number. 0: not dropped.
func Reasons() []Reason { return reasons }

// FallbackReasons returns by number all reasons why direct cannot carry a packet. 0: direct
// carries it.
func FallbackReasons() []Reason { return fallbackReasons }

// ReasonOf returns the drop reason with a number.
func ReasonOf(number uint32) Reason { return reasonOf(reasons, number) }

// FallbackReasonOf returns the reason with a number why direct cannot carry a packet.
func FallbackReasonOf(number uint32) Reason { return reasonOf(fallbackReasons, number) }

// reasonOf returns a reason of a list. Programs of a later version may have further numbers.
func reasonOf(all []Reason, number uint32) Reason {
	if int(number) < len(all) {
		return all[number]
	}
	return Reason{Number: number, Name: "unknown", Meaning: "a reason that this program does not know"}
}
