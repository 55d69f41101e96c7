// Package codec is the wire and raft view of the data model: CBOR by field name (RFC 8949), which keeps integers,
// durations and bytes exact, needs no schema and lets old readers skip new fields. Types use their json names unless
// a cbor tag says otherwise.
package codec

import (
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

var (
	encMode = func() cbor.EncMode {
		m, err := cbor.EncOptions{Time: cbor.TimeRFC3339Nano, TimeTag: cbor.EncTagNone, OmitEmpty: cbor.OmitEmptyGoValue}.EncMode()
		if err != nil {
			panic(err) // options are constant
		}
		return m
	}()
	decMode = func() cbor.DecMode {
		m, err := cbor.DecOptions{
			DefaultMapType:   reflect.TypeOf(map[string]any(nil)),
			IntDec:           cbor.IntDecConvertSignedOrBigInt,
			MaxArrayElements: 1 << 27,
			MaxMapPairs:      1 << 27,
			// What was encoded must be decodable, or else an entry of the raft log could never be applied: JSON may nest
			// 10000 levels deep, and Go strings need not be UTF-8.
			MaxNestedLevels: 65535,
			UTF8:            cbor.UTF8DecodeInvalid,
			TimeTag:         cbor.DecTagIgnored,
		}.DecMode()
		if err != nil {
			panic(err) // options are constant
		}
		return m
	}()
)

// ContentType marks a body in this encoding.
const ContentType = "application/cbor"

// Marshal encodes v.
func Marshal(v any) ([]byte, error) { return encMode.Marshal(v) }

// Unmarshal decodes data, which must hold exactly one value.
func Unmarshal(data []byte, v any) error { return decMode.Unmarshal(data, v) }

// NewEncoder writes a sequence of values to w.
func NewEncoder(w io.Writer) *cbor.Encoder { return encMode.NewEncoder(w) }

// NewDecoder reads a sequence of values from r.
func NewDecoder(r io.Reader) *cbor.Decoder { return decMode.NewDecoder(r) }
