package commands

import (
	"strings"
	"testing"

	"infill/cmd/infill/internal/metrics"
	"infill/cmd/infill/internal/terminal"
)

const (
	fills = "the kettle sang in the kitchen\n\nthe kettle hummed in the kitchen\nthe kettle sang in the garden\n" +
		"rain fell on the old roof\nrain fell on the new roof\nsnow fell on the old barn\n"
	results = `{"fills": [{"text": "the kettle sang", "log_likelihood": -2}, {"text": "the bird sang", "log_likelihood": -7}]}
{"fills": [{"text": "rain fell", "log_likelihood": -3}, {"text": "rain fell", "log_likelihood": -4}]}
`
)

func metricsFiles(t *testing.T) {
	writeFiles(t, map[string]string{
		"fills.txt": fills, "fills.csv": "id,text\n1,the kettle sang\n2,the bird sang\n", "empty.txt": "\n",
		"garden.txt": "rain fell on the garden\n", "list.JSON": "[" + strings.Replace(results, "\n", ",", 1) + "]",
		"fills.jsonl": results, "rows.jsonl": `{"text": "the kettle sang"}` + "\n" + `{"text": "the bird sang"}` + "\n",
		"augmented.jsonl": `{"text": "the kettle sang", "fills": ["sang"]}` + "\n" + `{"text": "a bird", "fills": ["a"]}`,
		"none.json":       `{"text": "the kettle sang"}`, "later.jsonl": `{"fills": [{"text": "a", "log_likelihood": -2}]}{"fills": []}`,
		"mixed.jsonl": `{"fills": [{"text": "a", "log_likelihood": -2}]}{"text": "b"}`, "half.jsonl": `{"fills": [{"text": "a"}]}`, "torn.jsonl": `{"fills": [{"te`,
		"open.jsonl": `[{"fills": [{"text": "a", "log_likelihood": -2}]}`, "nothing.jsonl": "",
		"odd.csv": "text\n\"a\"b\n",
	})
}

// What cannot be scored is refused in a line, with nothing on standard output.
func TestMetricsRefuses(t *testing.T) {
	metricsFiles(t)
	const top = "infill: --top needs log-likelihoods: give a .jsonl file that infill --format jsonl printed\n"
	const form = "\nhint: a file whose name ends in .jsonl or .json is what infill prints with --format jsonl or json\n"
	runCases(t, metrics.NewCmd, []callCase{
		{Line: "metrics", Code: 2, Err: "infill: 0 arguments given, one file is scored\n" +
			"hint: infill metrics FILE; references are named by -r NAME=FILE\n"},
		{Line: "metrics a b", Code: 2, Err: "infill: 2 arguments given, one file is scored\n"},
		{Line: "metrics nowhere.txt", Code: 2, Err: "infill: text: open nowhere.txt: "},
		{Line: "metrics nowhere.jsonl", Code: 2, Err: "infill: text: open nowhere.jsonl: "},
		{Line: "metrics empty.txt", Code: 2, Err: "infill: text (empty.txt): "},
		{Line: "metrics fills.txt -r none=empty.txt", Code: 2, Err: "infill: reference none (empty.txt): "},
		{Line: "metrics fills.txt -r all=garden.txt", Code: 2, Err: `infill: --reference: the name "all" is taken`},
		{Line: "metrics fills.txt -r garden.txt", Code: 2, Err: "infill: --reference: \"garden.txt\" is not " +
			"NAME=FILE\n"},
		{Line: "metrics fills.txt -r a=garden.txt -r a=fills.txt", Code: 2,
			Err: "infill: --reference: \"a=fills.txt\" is not a new name: \"a\" is given already\n"},
		{Line: "metrics fills.txt -r =garden.txt", Code: 2, Err: "is not NAME=FILE\n"},
		{Line: "metrics fills.txt -r a=", Code: 2, Err: "is not NAME=FILE\n"},
		{Line: "metrics fills.txt --smoothing some", Code: 2, Err: "infill: --smoothing: "},
		{Line: "metrics fills.txt --order 0", Code: 2, Err: "infill: --order: 0 is not a whole number from 1 to 16\n"},
		{Line: "metrics fills.txt --confidence 0", Code: 2,
			Err: "infill: --confidence: 0 is not a number between 0 and 1\n"},
		{Line: "metrics fills.txt --confidence 1.5", Code: 2, Err: "infill: --confidence: 1.5 is not "},
		{Line: "metrics fills.txt --ngrams 2,x", Code: 2, Err: `infill: --ngrams: "2,x" is not a list`},
		{Line: "metrics fills.txt --preset bert-gen --tokenisation discs", Code: 2,
			Err: "infill: --preset bert-gen and --tokenisation discs exclude each other: give one\n"},
		{Line: "metrics - -r a=-", Code: 2, Err: "infill: standard input (-) is named more than once: it can be " +
			"read once\n"},
		{Line: "metrics fills.txt -r a=- -r b=-", Code: 2, Err: "infill: standard input (-) is named more than once"},
		{Line: "metrics fills.txt --top 2", Code: 2, Err: top},
		{Line: "metrics fills.csv --top 2", Code: 2, Err: top},
		{Line: "metrics later.jsonl", Code: 2, Err: "infill: text (later.jsonl): object 2 holds no fills" + form},
		{Line: "metrics mixed.jsonl", Code: 2, Err: "infill: text (mixed.jsonl): object 2 holds no fills" + form},
		{Line: "metrics half.jsonl", Code: 2,
			Err: "infill: text (half.jsonl): object 1, fill 1: text or log_likelihood is missing" + form},
		{Line: "metrics torn.jsonl", Code: 2, Err: "infill: text (torn.jsonl): object 1: "},
		{Line: "metrics open.jsonl", Code: 2, Err: "infill: text (open.jsonl): unexpected EOF"},
		{Line: "metrics nothing.jsonl", Code: 2, Err: "infill: text (nothing.jsonl): no sentence: the text is empty"},
		{Line: "metrics none.json", Code: 2, Err: "infill: text (none.json): object 1 holds no fills" + form},
		{Line: "metrics fills.csv --column words", Code: 2,
			Err: "infill: text: --column: fills.csv has no column \"words\": its columns are \"id\", \"text\"\n"},
	})
}

// The file's name, or --from, tells how it is read; a result of infill has its templates
// and likelihoods.
func TestMetricsForms(t *testing.T) {
	metricsFiles(t)
	const likely = "mean log-likelihood, nats…-4.00\n"
	runCases(t, metrics.NewCmd, []callCase{
		{Line: "metrics fills.txt -r garden=garden.txt", Out: "  score …%…95 % interval\n  self-BLEU … to …\n" +
			"…corpus BLEU against garden …\n\n6 sentences, 36 tokens\ngarden: 1 sentence, 5 tokens\nsignature metrics:",
			Err: "infill: warning: text (fills.txt): 1 blank line left out\n"},
		{Line: "metrics -q fills.txt --confidence 0.9", Out: "  90 % interval\n"},
		{Line: "metrics -q fills.txt --no-intervals", Out: "  score …%\n  self-BLEU "},
		{Line: "metrics -q fills.txt --no-intervals --ngrams 9", Out: "unique 9-grams among themselves  not defined\n"},
		{Line: "metrics -q fills.jsonl --no-intervals", Out: "self-BLEU within templates …" + likely +
			"…4 sentences, 10 tokens\n"},
		{Line: "metrics -q fills.jsonl --no-intervals --top 1", Out: "repeated among the likeliest "},
		{Line: "metrics -q list.JSON --no-intervals", Out: likely},
		{Line: "metrics -q - --from jsonl --no-intervals", In: "\ufeff" + results, Out: likely},
		{Line: "metrics -q - --no-intervals", In: fills, Out: "6 sentences, 36 tokens\n"},
		{Line: "metrics -q fills.txt -r log=- --no-intervals", In: "rain fell\n", Out: "\nlog: 1 sentence, 2 tokens\n"},
		{Line: "metrics -q rows.jsonl --no-intervals", Out: "2 sentences, 6 tokens\n"},
		{Line: "metrics -q augmented.jsonl --no-intervals", Out: "2 sentences, 5 tokens\n"},
		{Line: "metrics -q fills.csv --no-intervals", Out: "2 sentences, 6 tokens\n"},
		{Line: "metrics -q fills.csv --no-intervals --column id", Out: "2 sentences, 2 tokens\n"},
		{Line: "metrics -q - --from csv --no-intervals", In: "text\na b\nc\n", Out: "2 sentences, 3 tokens\n"},
		{Line: "metrics -q --preset bert-gen fills.txt -r g=garden.txt -r h=garden.txt --no-intervals",
			Out: "tokenisation:bert-gen…|union-first:2500"},
		{Line: "metrics -q --preset bert-gen --tokenisation bert-gen --union-first 7 fills.txt -r g=garden.txt " +
			"-r h=garden.txt --no-intervals", Out: "tokenisation:bert-gen…|union-first:7"},
		{Line: "metrics -q fills.txt --no-intervals --format csv --ngrams 2",
			Out: "metric,reference,n,unit,value,low,high,signature\nself_bleu,,,percent,…,,,metric:self-bleu|…\n" +
				"unique_ngrams,self,2,percent,"},
		{Line: "metrics -q fills.txt --format csv --ngrams 9", Out: "\nunique_ngrams,self,9,percent,,,,metric:"},
		{Line: "metrics -q fills.txt --no-intervals --format json", Out: "{\n  \"sentences\": 6,\n  \"tokens\": 36,\n"},
	})
}

// A warning that holds for several scores comes once, with their names; --quiet leaves
// all out.
func TestMetricsWarnings(t *testing.T) {
	metricsFiles(t)
	r := call(t, metrics.NewCmd, terminal.Streams{}, "metrics", "fills.txt", "--ngrams", "8,9")
	for line := range strings.Lines(r.Err) {
		_, message, _ := strings.Cut(strings.TrimPrefix(line, "infill: warning: "), ": ")
		if strings.Count(r.Err, message) != 1 {
			t.Errorf("%q stands more than once in %s", message, r.Err)
		}
	}
	if !strings.Contains(r.Err, "unique_ngrams/self/9, distinct_ngrams/9: ") {
		t.Errorf("warnings %s", r.Err)
	}
	r = call(t, metrics.NewCmd, terminal.Streams{}, "metrics", "-q", "fills.txt", "--ngrams", "8,9")
	if r.Code != 0 || r.Err != "" {
		t.Errorf("quiet: %+v", r)
	}
}
