package meter

// Moved is what the series devices of all nodes received between two light
// readings, one before and one after for each node, in bits per second with all
// headers. ok is false where the readings cannot be compared.
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
