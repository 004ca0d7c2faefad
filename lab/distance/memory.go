package distance

import "time"

// copyBytes, read and written, do not fit into the private caches of today's
// CPUs. One copy takes some 50 µs.
const copyBytes = 512 << 10

// block is memory that a thread copies.
type block struct{ from, to []byte }

func newBlock() *block {
	b := &block{make([]byte, copyBytes), make([]byte, copyBytes)}
	for i := range b.from {
		b.from[i] = byte(i) // real pages, not the kernel's shared page of zeroes
	}
	copy(b.to, b.from)
	return b
}

func (b *block) copy() time.Duration {
	begin := time.Now()
	copy(b.to, b.from)
	return max(time.Since(begin), 1)
}
