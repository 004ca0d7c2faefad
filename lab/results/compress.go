package results

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxOutput limits the size of one decompressed output, in bytes, so that a damaged or
// hostile store cannot fill the memory.
const maxOutput = 256 << 20

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // only wrong options fail, and these are constant
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxOutput))
	if err != nil {
		panic(err) // only wrong options fail, and these are constant
	}
	return d
})

func compress(text string) []byte { return encoder().EncodeAll([]byte(text), []byte{}) }

func decompress(packed []byte) (string, error) {
	if len(packed) == 0 {
		return "", nil
	}
	text, err := decoder().DecodeAll(packed, nil)
	if err != nil {
		return "", fmt.Errorf("decompress %d bytes of zstd: %w", len(packed), err)
	}
	return string(text), nil
}
