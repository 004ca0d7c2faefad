package netpol

// numbers has the numbers of identities and groups by their texts. A number is derived from the text, so
// another process computes the same numbers, unless two texts have the same hash.
type numbers struct {
	known map[string]uint32
	taken map[uint32]bool // by known and freed
	freed []uint32        // since begin: the data path may still have entries with them
}

func newNumbers() numbers {
	return numbers{known: map[string]uint32{}, taken: map[uint32]bool{0: true, closed.Number: true}}
}

// begin begins a new result.
func (n *numbers) begin() {
	for _, x := range n.freed {
		delete(n.taken, x)
	}
	n.freed = nil
}

// of returns the number of a text.
func (n *numbers) of(text string) uint32 {
	if x, known := n.known[text]; known {
		return x
	}
	x := sum([]byte(text))
	for n.taken[x] {
		x++
	}
	n.known[text], n.taken[x] = x, true
	return x
}

// free forgets the number of a text that is no longer used.
func (n *numbers) free(text string) {
	n.freed = append(n.freed, n.known[text])
	delete(n.known, text)
}
