package meter

import "fmt"

// If two readings cannot be compared, Window returns one of these errors. The trial
// must then be repeated, or the node needs other CPUs.

// errOffline returns the error for a CPU of the node that is missing in a reading.
func errOffline(cpu int) error {
	return fmt.Errorf("CPU %d of the node is offline or went offline during the window: keep it online (echo 1 > /sys/devices/system/cpu/cpu%d/online) or give the node other CPUs", cpu, cpu)
}

// errWentBack returns the error for a counter that fell by more than a 32-bit wrap
// explains: the counted object was replaced during the window.
func errWentBack(what string, before, after uint64) error {
	return fmt.Errorf("%s went back from %d to %d during the window: the counted object was replaced or reset; the trial must be repeated", what, before, after)
}

// errGone returns the error for a device, a namespace or a VM that is missing in a
// reading, or that was replaced by another one of the same name.
func errGone(what string) error {
	return fmt.Errorf("%s was removed, added or replaced during the window; the trial must be repeated", what)
}

// badLine returns the error for a text from the kernel in an unexpected form.
func badLine(file string, line []byte, want string) error {
	return fmt.Errorf("read %s: line %.120q: want %s", file, line, want)
}

// since returns the growth of a counter between two readings. A counter of 32
// bits may have wrapped once. A fall that a wrap does not explain is an error.
func since(what string, before, after uint64) (uint64, error) {
	switch {
	case after >= before:
		return after - before, nil
	case before < 1<<32 && before-after > 1<<31:
		return 1<<32 - before + after, nil
	}
	return 0, errWentBack(what, before, after)
}
