// Command steps counts the steps of reading texts. TestReadingIsLinear builds it with
// -cover, so that a step is a run of a block of statements, in this module and in those
// packages of Go that read texts. It also counts bytes of memory, which copies take.
//
// A line of standard input is {"door": ..., "text": ...}: who reads what. The answer is
// the line {"steps": ..., "bytes": ...}.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/coverage"
	"slices"
	"strings"
	"testing/fstest"

	"infill/infill"
	"infill/internal/batch"
	"infill/internal/lmtest"
	"infill/internal/rawjson"
	"infill/internal/serve"
	"infill/tokenize"
)

func main() {
	err := run(os.Stdin, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
}

func run(in io.Reader, out io.Writer) error {
	doors, err := doors()
	if err != nil {
		return err
	}
	for lines := json.NewDecoder(in); ; {
		var asked struct{ Door, Text string }
		err := lines.Decode(&asked)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if doors[asked.Door] == nil {
			return fmt.Errorf("no door %q", asked.Door)
		}
		steps, bytes, err := count(func() { doors[asked.Door](asked.Text) })
		if err == nil {
			err = json.NewEncoder(out).Encode(map[string]uint64{"steps": steps, "bytes": bytes})
		}
		if err != nil {
			return err
		}
	}
}

// count returns how many steps do makes, and how many bytes it allocates.
func count(do func()) (steps, allocated uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = coverage.ClearCounters()
	if err != nil {
		return 0, 0, err
	}
	do()
	var counters bytes.Buffer
	err = coverage.WriteCounters(&counters)
	if err != nil {
		return 0, 0, err
	}
	runtime.ReadMemStats(&after)
	steps, err = sum(counters.Bytes())
	return steps, after.TotalAlloc - before.TotalAlloc, err
}

// sum adds up counters in the format of Go's package internal/coverage: a header, which
// says whether numbers are of 32 bits (1) or in LEB128 (2), the header of a segment with the
// number of functions and the sizes of two tables, which follow; then for each function the
// number of its counters, its package, its number there, and its counters.
func sum(data []byte) (total uint64, err error) {
	const header, segment, flavor = 32, 16, 24
	if len(data) < header+segment {
		return 0, io.ErrUnexpectedEOF
	}
	functions := binary.LittleEndian.Uint64(data[header:])
	tables := int(binary.LittleEndian.Uint32(data[header+8:]) + binary.LittleEndian.Uint32(data[header+12:]))
	rest := data[header+segment+(tables+3)&^3:]
	next := func() (n uint64) {
		size := 4
		if data[flavor] == 1 {
			n = uint64(binary.LittleEndian.Uint32(rest))
		} else {
			n, size = binary.Uvarint(rest)
		}
		rest = rest[size:]
		return n
	}
	for range functions {
		counters := next()
		next()
		next()
		for range counters {
			total += next()
		}
	}
	return total, nil
}

func doors() (map[string]func(text string), error) {
	doors := map[string]func(text string){
		"parts":  func(text string) { tokenize.Maskable(text); tokenize.Sentences(text) },
		"spans":  func(text string) { tokenize.BlankSpans(text, ""); tokenize.WordSpans(text, "@") },
		"meant":  func(text string) { tokenize.MeantBlank(text) },
		"object": func(text string) { rawjson.Parse([]byte(text)) }, //nolint:errcheck // what counts is that it is read
		"whole":  func(text string) { rawjson.Whole([]byte(text)) }, //nolint:errcheck // see above
		"string": func(text string) { rawjson.Quote(text).Text() },  //nolint:errcheck // see above
	}
	for _, family := range []string{"roberta", "modernbert", "xlm-roberta", "albert", "deberta-v2", "gemma"} {
		file, err := os.ReadFile(filepath.Join("../../tokenize/testdata/families", family+".tokenizer.json"))
		if err != nil {
			return nil, err
		}
		t, err := tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: file}})
		if err != nil {
			return nil, err
		}
		readers(doors, family, t)
	}
	for _, form := range batch.Forms() {
		doors[string(form)] = func(text string) { records(form, text) }
	}
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat a i . , ##a")
	t, err := lmtest.Tokenizer(words)
	if err != nil {
		return nil, err
	}
	readers(doors, "wordpiece", t)
	f := infill.New(lmtest.New(len(words), 32), t)
	// What is read whole for each gap shows sooner if a model sees little.
	near := infill.New(lmtest.New(len(words), 8), t)
	doors["gaps"] = func(text string) {
		for _, r := range []infill.GapsRequest{{Every: 3, Part: "noun"}, {Every: 3}, {Words: pieces(text)}} {
			r.Text = text
			near.Gaps(context.Background(), r) //nolint:errcheck // see above
		}
	}
	limits := serve.DefaultLimits()
	limits.Rows = 1 // the texts are read, and few are filled
	s, err := serve.New(serve.Options{Models: map[string]*infill.Filler{"fake": f}, Default: "fake", Limits: limits})
	if err != nil {
		return nil, err
	}
	post := func(path, body string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	for line := range strings.Lines(bodies) {
		c := strings.Split(strings.TrimSpace(line), "\t")
		doors[c[0]] = func(text string) {
			list, _ := rawjson.Encode(pieces(text)) // texts can always be encoded
			post(c[1], strings.NewReplacer("TEXT", string(rawjson.Quote(text)), "LIST", string(list)).Replace(c[2]))
		}
	}
	doors["body"] = func(text string) { post("/v1/fill", text) }
	doors["keys"] = func(text string) {
		var body strings.Builder
		for i, word := range pieces(text) {
			fmt.Fprintf(&body, "%s:%d,", rawjson.Quote(fmt.Sprint(i, word)), i)
		}
		post("/v1/fill", `{`+body.String()+`"template": "the [MASK]"}`)
		post("/v1/fill", `{`+string(rawjson.Quote(text))+`: {`+body.String()+`"a": 1}}`)
	}
	return doors, nil
}

// bodies are requests with a text, or a list of its pieces: a name, a path and a body in
// each line.
//
//go:embed bodies.tsv
var bodies string

// pieces cuts a text into pieces of few characters.
func pieces(text string) (list []string) {
	for piece := range slices.Chunk([]rune(text), 5) {
		list = append(list, string(piece))
	}
	return list
}

func readers(doors map[string]func(text string), name string, t *tokenize.Tokenizer) {
	doors[name+", template"] = func(text string) { t.Shortest(text, "") } //nolint:errcheck // see above
	doors[name+", plain"] = func(text string) { t.Plain(text) }           //nolint:errcheck // see above
	doors[name+", own mask"] = func(text string) { t.OnlyMask(text) }     //nolint:errcheck // see above
	doors[name+", encode"] = func(text string) { t.Encode(text) }         //nolint:errcheck // see above
	doors[name+", filled"] = func(text string) {
		tpl, err := t.Shortest(text, "")
		if err == nil {
			tpl.Fill([]int{t.UnknownID()})
			tpl.Joined()
		}
	}
}

// records reads a file in a form, whose table has a column "text".
func records(form batch.Form, text string) {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("steps-%d.%s", os.Getpid(), form))
	defer os.Remove(file)
	if os.WriteFile(file, []byte("text\n"+text), 0o600) == nil {
		batch.Records(batch.File{Path: file, Form: form}, "text") //nolint:errcheck // what counts is that it is read
	}
}
