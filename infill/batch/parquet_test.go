package batch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"infill/infill"
)

// parquetOf is a file of rows.
func parquetOf[T any](t *testing.T, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestParquetTypes: what a column holds comes out as it is, whatever its type.
func TestParquetTypes(t *testing.T) {
	type row struct {
		Text   string           `parquet:"text"`
		Big    uint64           `parquet:"big"`
		Small  uint32           `parquet:"small"`
		Day    int32            `parquet:"day,date"`
		At     time.Time        `parquet:"at,timestamp(microsecond)"`
		Clock  int32            `parquet:"clock,time(millisecond)"`
		Price  int64            `parquet:"price,decimal(2:18)"`
		Owed   int32            `parquet:"owed,decimal(3:9)"`
		Key    [16]byte         `parquet:"key,uuid"`
		Raw    [3]byte          `parquet:"raw"`
		Old    deprecated.Int96 `parquet:"old"`
		Mark   float64          `parquet:"mark"`
		None   *uint64          `parquet:"none,optional"`
		Least  float32          `parquet:"least"`
		Most   float64          `parquet:"most"`
		Part   float32          `parquet:"part"`
		On     bool             `parquet:"on"`
		Tiny   int8             `parquet:"tiny"`
		Parsed string           `parquet:"parsed,json"`
	}
	const julian = 2440588 + 19849
	nanoseconds := uint64(3661_000000005)
	got, rejects, _ := run(t, "in.parquet", parquetOf(t, row{
		Text: "a", Big: math.MaxUint64, Small: math.MaxUint32, Day: 19849, At: time.UnixMicro(1714979289000001),
		Clock: 3661005, Price: 123456789012345678, Owed: -45,
		Key: [16]byte{0: 0x12, 15: 0xff}, Raw: [3]byte{0xff, 0, 1},
		Old: deprecated.Int96{uint32(nanoseconds), uint32(nanoseconds >> 32), julian}, Mark: math.NaN(),
		Least: float32(math.Inf(-1)), Most: math.Inf(1), Part: 0.1, On: true, Tiny: -3, Parsed: `{"x": [1, 2]}`,
	}), "o.jsonl")
	const want = `{"text":"a","big":18446744073709551615,"small":4294967295,"day":"2024-05-06","at":"2024-05-06T07:08:09.000001Z","clock":"01:01:01.005","price":1234567890123456.78,"owed":-0.045,` +
		`"key":"12000000-0000-0000-0000-0000000000ff","raw":"/wAB","old":"2024-05-06T01:01:01.000000005","mark":null,"none":null,"least":"-Infinity","most":"Infinity","part":0.1,"on":true,"tiny":-3,"parsed":{"x":[1,2]},"n":1,`
	if got, _, _ = strings.Cut(got, `"samples"`); got != want || rejects != "" {
		t.Error(cmp.Diff(want, got), rejects)
	}
}

// TestParquetRefuses: a column with parts, and a value that is not what its column says, are named.
func TestParquetRefuses(t *testing.T) {
	type inner struct {
		Day int32 `parquet:"day,date"`
	}
	type group struct {
		Text string `parquet:"text"`
		Info inner  `parquet:"info"`
	}
	type list struct {
		Text string   `parquet:"text"`
		Info []string `parquet:"info,list"`
	}
	type repeated struct {
		Text string   `parquet:"text"`
		Info []string `parquet:"info"`
	}
	dir := t.TempDir()
	for _, content := range []string{parquetOf(t, group{Text: "a"}), parquetOf(t, list{Text: "a"}),
		parquetOf(t, repeated{Text: "a"})} {
		in := put(t, dir, "in.parquet", content)
		_, err := Run(t.Context(),
			Job{Input: File{Path: in}, Output: File{Path: filepath.Join(dir, "o.jsonl")}, Work: &shout{}})
		if want := in + `: column "info" is a list, a map or a group, which is not read: write it as JSON text, or leave it out`; err == nil || err.Error() != want {
			t.Error(err)
		}
	}
	type said struct {
		Text string `parquet:"text"`
		Raw  string `parquet:"raw"`
	}
	_, rejects, _ := run(t, "in.parquet", parquetOf(t, said{"a", "ok"}, said{"b", "\xff"}), "o.jsonl")
	if want := `{"row":2,"error":"column \"raw\": it is not valid UTF-8: leave the column out, or write it as text","input":""}` + "\n"; rejects != want {
		t.Error(rejects)
	}
	type parsed struct {
		Text string `parquet:"text"`
		Raw  string `parquet:"raw,json"`
	}
	_, rejects, _ = run(t, "in.parquet", parquetOf(t, parsed{"a", "nope"}), "o.jsonl")
	if want := `{"row":1,"error":"column \"raw\": it is not JSON: leave the column out, or write it as text","input":""}` + "\n"; rejects != want {
		t.Error(rejects)
	}
}

// TestParquetBytes: a column that does not say that it holds text is text or base64 as a whole, and the text that is
// worked at is text.
func TestParquetBytes(t *testing.T) {
	type row struct {
		Text []byte `parquet:"text"`
		Raw  []byte `parquet:"raw,optional"`
		Word []byte `parquet:"word"`
	}
	in := parquetOf(t, row{[]byte("a"), []byte("ok"), []byte("ok")}, row{[]byte("\xff"), nil, nil},
		row{[]byte("b"), []byte("\x00\xff\x10"), []byte("é")})
	got, rejects, _ := run(t, "in.parquet", in, "o.csv")
	const want = `text,raw,word,n,rank,loud,share
a,b2s=,ok,1,1,A,0.5
a,b2s=,ok,1,2,A!,1
b,AP8Q,é,3,1,B,0.5
b,AP8Q,é,3,2,B!,1
`
	if got != want || !strings.HasPrefix(rejects, `{"row":2,"error":"column \"text\": it is not valid UTF-8`) {
		t.Error(cmp.Diff(want, got), rejects)
	}
}

// TestParquetKeepsTypes: a column has the type that it has in the input, whatever its values are.
func TestParquetKeepsTypes(t *testing.T) {
	type row struct {
		Text  string   `parquet:"text"`
		Share *float64 `parquet:"share,optional"` // comes out as input_share
		Part  float32  `parquet:"part"`
		Tiny  int8     `parquet:"tiny"`
		Small uint32   `parquet:"small"`
		Big   uint64   `parquet:"big"`
		On    *bool    `parquet:"on,optional"`
		Day   *int32   `parquet:"day,optional,date"`
		Price int64    `parquet:"price,decimal(2:9)"`
		Owed  int64    `parquet:"owed,decimal(2:18)"`
		Loose string   `parquet:"loose,json"`
	}
	const want = `message infill {
	optional binary text (STRING);
	optional double input_share;
	optional float part;
	optional int32 tiny (INT(8,true));
	optional int32 small (INT(32,false));
	optional int64 big (INT(64,false));
	optional boolean on;
	optional binary day (STRING);
	optional double price;
	optional binary owed (STRING);
	optional binary loose (STRING);
	optional int64 n (INT(64,true));
	optional int64 rank (INT(64,true));
	optional binary loud (STRING);
	optional double share;
}`
	whole, huge, on, day := 2.0, 1e17, true, int32(19849)
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{Text: "a", Loose: "1"}, `"input_share":null,"part":0,"tiny":0,"small":0,"big":0,"on":null,"day":null,"price":0,"owed":"0.00","loose":"1",`},
		{row{Text: "a", Share: &whole, Part: 1, Tiny: -1, Small: 7, Big: 7, Price: 100, Owed: 100, Loose: "null"},
			`"input_share":2,"part":1,"tiny":-1,"small":7,"big":7,"on":null,"day":null,"price":1,"owed":"1.00","loose":null,`},
		{row{"a", &huge, float32(math.Inf(-1)), -128, math.MaxUint32, math.MaxUint64, &on, &day, 12345, 12345, "[1]"},
			`"input_share":100000000000000000,"part":"-Infinity","tiny":-128,"small":4294967295,"big":18446744073709551615,"on":true,"day":"2024-05-06","price":123.45,"owed":"123.45","loose":"[1]",`},
	} {
		got, _, _ := run(t, "in.parquet", parquetOf(t, c.row), "o.parquet")
		table, err := openTable(put(t, t.TempDir(), "o.parquet", got))
		if err != nil {
			t.Fatal(err)
		}
		defer table.close()
		if diff := cmp.Diff(want, table.parquet.Schema().String()); diff != "" {
			t.Error(diff)
		}
		if r, err := table.next(true); err != nil || !strings.HasPrefix(string(r.Object.Append(nil)), `{"text":"a",`+c.want) {
			t.Errorf("%s, %v", r.Object.Append(nil), err)
		}
	}
}

// TestParquetChangesTypes: what does not fit the type that a column should have is kept, also if another part has it.
func TestParquetChangesTypes(t *testing.T) {
	s := state{at: map[string]int{}, typeOf: func(string) string { return parquetInteger }}
	s.take(&entry{Number: 1, Columns: []string{"a"}, Cells: [][]json.RawMessage{{json.RawMessage("1")}}})
	other := state{Columns: slices.Clone(s.Columns)}
	s.take(&entry{Number: 2, Cells: [][]json.RawMessage{{json.RawMessage(`"one"`)}}})
	if columns := columnsOf([]finished{{state: s}, {state: other}}); columns[0].parquetType() != parquetWords {
		t.Errorf("%+v", columns)
	}
}

// TestResultTypes: columns of a result have a type of their own, those of the user beside them theirs.
func TestResultTypes(t *testing.T) {
	f := &Fill{Options: infill.DefaultOptions()}
	a := &Augment{}
	for _, c := range []struct {
		work               work
		name, users, wants string
	}{
		{f, "rank", "", "INT(64,true)"}, {f, "text", "INT32", "STRING"}, {f, "blank_12", "INT32", "STRING"},
		{f, "probability", "", "DOUBLE"}, {f, "probability_error", "", "DOUBLE"}, {f, "log_likelihood", "", "DOUBLE"},
		{f, "seed", "", "INT(64,false)"}, {f, "proven", "", "BOOLEAN"}, {f, "token_ids", "", "STRING"},
		{f, "count", "INT32", "INT32"}, {f, "page", "FLOAT", "FLOAT"}, {f, "page", "", ""},
		{a, "variant", "", "INT(64,true)"}, {a, "masked", "", "STRING"}, {a, "log_likelihood", "", "DOUBLE"},
		{a, "page", "FLOAT", "FLOAT"},
	} {
		if got := c.work.typeOf(c.name, c.users); got != c.wants {
			t.Errorf("%s: %q, not %q", c.name, got, c.wants)
		}
	}
	f.Options.Sampler = "gibbs"
	if got := f.typeOf("count", ""); got != parquetInteger {
		t.Error(got)
	}
}

// TestParquetNumbers: no number loses digits in a column.
func TestParquetNumbers(t *testing.T) {
	got, rejects, _ := run(t, "in.jsonl",
		`{"text":"a","seed":18446744073709551615,"id":9007199254740993,"mixed":9007199254740993,"huge":1e400,"long":0.12345678901234567891,"plain":1}
{"text":"b","seed":1,"id":2,"mixed":0.5,"huge":1,"long":0.5,"plain":-2.5e-3}
`, "o.parquet")
	table, err := openTable(put(t, t.TempDir(), "o.parquet", got))
	if err != nil || rejects != "" {
		t.Fatal(err, rejects)
	}
	defer table.close()
	for i, want := range []string{
		`{"text":"a","seed":"18446744073709551615","id":9007199254740993,"mixed":"9007199254740993","huge":"1e400","long":"0.12345678901234567891","plain":1,`, "",
		`{"text":"b","seed":"1","id":2,"mixed":"0.5","huge":"1","long":"0.5","plain":-0.0025,`,
	} {
		r, err := table.next(true)
		if got := string(r.Object.Append(nil)); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("row %d: %s, %v", i, got, err)
		}
	}
}

// emptied is a Parquet file of an empty group, as pyarrow writes one, without a page of data, and rows more.
func emptied(t *testing.T, rows int) string {
	t.Helper()
	type row struct {
		Text string `parquet:"text"`
	}
	content := parquetOf(t, row{"a"})
	file, err := parquet.OpenFile(strings.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	m := *file.Metadata()
	empty := m.RowGroups[0]
	empty.NumRows, empty.Columns = 0, slices.Clone(empty.Columns)
	empty.Columns[0].MetaData.NumValues, empty.Columns[0].MetaData.DataPageOffset = 0, 0
	m.NumRows, m.RowGroups = int64(rows), append([]format.RowGroup{empty}, m.RowGroups[:rows]...)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &m)
	if err != nil {
		t.Fatal(err)
	}
	end := len(content) - 8 - int(binary.LittleEndian.Uint32([]byte(content[len(content)-8:])))
	return content[:end] + string(footer) + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
}

// TestParquetWithoutRows: a table without rows is no damaged file, nor is one with a group without rows.
func TestParquetWithoutRows(t *testing.T) {
	for rows, want := range []string{"", "A\n"} {
		if got, rejects, s := run(t, "in.parquet", emptied(t, rows), "o.txt"); got != want || rejects != "" {
			t.Errorf("%q, %s, %+v", got, rejects, s)
		}
	}
}
