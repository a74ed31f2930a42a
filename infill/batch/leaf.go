package batch

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

func logical(t parquet.Type) format.LogicalTypeValue {
	if l := t.LogicalType(); l != nil {
		return l.Value
	}
	return nil
}

// cellOf is the value of a leaf as JSON has it: numbers with all their digits, dates and times
// in the form of RFC 3339, a UUID as its text, other bytes in base64; null for what is no number, and words for what is
// infinite. Text that is not valid UTF-8 is an error.
func (f field) cellOf(v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	switch l := logical(f.of).(type) {
	case *format.IntType:
		switch {
		case l.IsSigned:
			return plainOf(v)
		case v.Kind() == parquet.Int32:
			return v.Uint32(), nil
		}
		return v.Uint64(), nil
	case *format.StringType, *format.EnumType:
		return plainOf(v)
	case *format.JsonType:
		if !json.Valid(v.ByteArray()) {
			return nil, errors.New("it is not JSON: leave the column out, or write it as text")
		}
		return json.RawMessage(v.Clone().ByteArray()), nil
	case *format.DecimalType:
		return decimalOf(v, int(l.Scale)), nil
	case *format.DateType:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(v.Int32())).Format(time.DateOnly), nil
	case *format.TimeType:
		n := v.Int64()
		if v.Kind() == parquet.Int32 {
			n = int64(v.Int32())
		}
		return instant(0, n, l.Unit).Format("15:04:05.999999999"), nil
	case *format.TimestampType:
		if l.IsAdjustedToUTC {
			return instant(0, v.Int64(), l.Unit).Format(time.RFC3339Nano), nil
		}
		return instant(0, v.Int64(), l.Unit).Format("2006-01-02T15:04:05.999999999"), nil
	case *format.UUIDType:
		id, err := uuid.FromBytes(v.ByteArray())
		return id.String(), err
	case *format.Float16Type:
		return nil, errors.New("it holds numbers of 16 bits: write them as 32 bits")
	case nil:
		if !f.bytes {
			return plainOf(v)
		}
	}
	return base64.StdEncoding.EncodeToString(v.ByteArray()), nil
}

// plainOf is the value of a leaf that says no more than how it is stored.
func plainOf(v parquet.Value) (any, error) {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32:
		return v.Int32(), nil
	case parquet.Int64:
		return v.Int64(), nil
	case parquet.Int96: // nanoseconds of a Julian day, an older program's timestamp
		const epoch = 2440588
		at := v.Int96()
		return instant((int64(at[2])-epoch)*86400, int64(uint64(at[1])<<32|uint64(at[0])),
			format.TimeUnit{}).Format("2006-01-02T15:04:05.999999999"), nil
	case parquet.Float:
		return numberOf(float64(v.Float()), v.Float()), nil
	case parquet.Double:
		return numberOf(v.Double(), v.Double()), nil
	case parquet.FixedLenByteArray:
		return base64.StdEncoding.EncodeToString(v.ByteArray()), nil
	}
	if !utf8.Valid(v.ByteArray()) {
		return nil, errors.New("it is not valid UTF-8: leave the column out, or write it as text")
	}
	return string(v.ByteArray()), nil
}

// numberOf is a number in its own width, or what stands for one that JSON has not.
func numberOf(f float64, own any) any {
	switch {
	case math.IsNaN(f):
		return nil
	case math.IsInf(f, 0):
		return map[bool]string{false: "Infinity", true: "-Infinity"}[f < 0]
	}
	return own
}

// instant is n units, nanoseconds where unit says nothing, after so many seconds of 1970.
func instant(seconds, n int64, unit format.TimeUnit) time.Time {
	size := int64(time.Nanosecond)
	if unit.Value != nil {
		size = int64(unit.Value.Duration())
	}
	each := int64(time.Second) / size
	return time.Unix(seconds+n/each, n%each*size).UTC()
}

// decimalOf is a decimal number with scale digits behind its point.
func decimalOf(v parquet.Value, scale int) json.RawMessage {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default: // two's complement, the highest byte first
		b := v.ByteArray()
		if n.SetBytes(b); len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	digits := new(big.Int).Abs(n).String()
	if scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		digits = "-" + digits
	}
	return json.RawMessage(digits)
}
