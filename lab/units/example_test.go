package units_test

import (
	"fmt"

	"windtunnel/lab/units"
)

// Sizes are binary and rates are decimal, as traffic tools write them.
func Example() {
	size, _ := units.ParseBytes("128k")
	rate, _ := units.ParseRate("10Gbit")
	wait, _ := units.ParseDuration("1.5s")
	fmt.Println(size, rate, wait)
	fmt.Println(units.FormatBytes(size), units.FormatRate(float64(rate)), units.FormatDuration(float64(wait)))
	_, err := units.ParseBytes("128 parsecs")
	fmt.Println(err)
	// Output:
	// 131072 10000000000 1.5s
	// 128 KiB 10 Gbit/s 1.5 s
	// size "128 parsecs" at character 5: "parsecs" is not a unit of size; write a size such as "1390", "128k", "2M" or "1G" (k = 1024 bytes)
}
