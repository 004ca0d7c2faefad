package distance

import "time"

// copyBytes exceed the private caches of today's CPUs together with their
// target, and take some 50 µs to copy.
const copyBytes = 512 << 10

// block is memory that a thread copies.
type block struct{ from, to []byte }

func newBlock() *block {
	b := &block{make([]byte, copyBytes), make([]byte, copyBytes)}
	for i := range b.from {
		b.from[i] = byte(i) // pages of their own, not the kernel's page of zeroes
	}
	copy(b.to, b.from)
	return b
}

func (b *block) copy() time.Duration {
	begin := time.Now()
	copy(b.to, b.from)
	return max(time.Since(begin), 1)
}
