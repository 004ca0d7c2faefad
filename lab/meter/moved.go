package meter

// Moved is the rate at which the series devices of all nodes received between
// two light readings, in bits per second with all headers. Each node has one
// reading before and one after. ok is false if the readings cannot be compared.
func Moved(before, after []Light) (bits float64, ok bool) {
	if len(before) != len(after) {
		return 0, false
	}
	for i := range before {
		s, ok := between(before[i], after[i])
		if !ok {
			return 0, false
		}
		bits += s.bits
	}
	return bits, len(before) > 0
}
