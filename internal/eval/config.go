// Package eval runs samplers over sentences of corpora and compares them. It
// follows section 7.5 and table 3 of the discrete Langevin paper (Zhang, Liu
// and Liu, ICML 2022), and the protocol of the DISCS benchmark (Goshvadi et
// al., NeurIPS 2023).
//
// A run is a folder of four files. run.json holds the configuration and the
// versions of models and program. samples.jsonl has one line for each sentence
// and method, written and synced as soon as its fill is done. metrics.json
// holds the scores. If a process is killed, the user can start the same run
// again to finish it. metrics.json then has the same bytes, because it depends
// neither on time nor on the order of the work. samples.csv names each sample,
// so that numbers from elsewhere can be joined, and has those of a judge.
package eval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/eval/corpus"
	"infill/internal/option"
	"infill/metrics"
)

// Config holds the user's choices that change the numbers of a run, except for
// models and corpora. run.json identifies models and corpora by their content.
type Config struct {
	Preset    string    `json:"preset"`   // one of Presets()
	Samplers  []variant `json:"samplers"` // names are unique
	Sentences int       `json:"sentences" option:"sentences" help:"of all corpora together"`
	// Select says which sentences of each corpus to mask, and how. Its
	// fields Sentences and Seed are not used: corpusInfo.Masked and
	// Config.Seed replace them.
	Select corpus.SelectOptions `json:"select"`
	Chains int                  `json:"samples" option:"samples" short:"n" help:"chains of each sentence, each of which ends in one sample"`
	// Top is the number of each sentence's likeliest final states for the first
	// set of scores, methodResult.Top.
	Top     int           `json:"top" option:"top" short:"k" help:"likeliest samples of each sentence to score"`
	Metrics metricsConfig `json:"metrics"`
	Seed    uint64        `json:"seed" option:"seed" help:"start of all random numbers: sentences, masks, chains, resampling"`
}

// metricsConfig holds the options that change the scores of given samples.
type metricsConfig struct {
	Tokenisation metrics.Tokenisation `json:"tokenisation"`
	UnionFirst   int                  `json:"union_first" option:"union-first" help:"limit corpus BLEU to the first N sentences of each corpus; 0 is all"`
	KeepSources  bool                 `json:"keep_sources" option:"keep-sources" help:"keep the masked sentences in the references"`
	Confidence   float64              `json:"confidence" option:"confidence" help:"of the intervals, between 0 and 1"`
}

func (c Config) metrics() metrics.Options {
	m := c.Metrics
	return metrics.Options{Tokenisation: m.Tokenisation, UnionFirst: m.UnionFirst,
		Confidence: m.Confidence, Seed: c.Seed}
}

// variant is a sampler with its settings, and its name in tables.
type variant struct {
	Name   string     `json:"name"`
	Chains ask.Chains `json:"chains"`
}

// request returns the request of a fill by the variant v. The fill keeps every
// chain's final state, repeats included.
func (c Config) request(v variant) infill.Request {
	chains := infill.Chains(v.Chains)
	chains.Samples = c.Chains
	chains.Rank = infill.RankFinal
	// The papers let a slot take every token.
	return infill.Request{Fit: infill.Fit{Fill: infill.FillAny}, Top: c.Chains, Method: chains,
		Seed: c.Seed}
}

// Presets lists the protocols, the default first: of the discrete Langevin
// paper, of DISCS, and no protocol.
func Presets() []string { return []string{"dlp", "discs", "none"} }

// Preset returns the configuration of one of Presets(), without models, samplers
// and corpora. base holds the options that its samplers share, and methods its
// samplers as ParseVariants reads them.
func Preset(name string) (c Config, base []ask.Given, methods string, err error) {
	c = Config{
		Preset: name, Sentences: 20, Chains: 25, Top: 5, Seed: 1,
		Metrics: metricsConfig{Tokenisation: metrics.BertGen,
			Confidence: metrics.DefaultOptions().Confidence},
	}
	switch name {
	case "dlp":
		c.Select = corpus.DLP(0, 0)
		methods = "gibbs:paper,gwg:paper,dula:paper,dmala:paper,gibbs,gwg,dula,dmala,dmala-adaptive,mlm-mh,pafs"
	case "discs":
		c.Select = corpus.DISCSProtocol(0, 0)
		c.Metrics.Tokenisation = metrics.DISCS
		base = append(base, ask.MustGive("initial", string(infill.StartShared)))
		methods = "gwg:paper,dmala:paper,dmala-adaptive:paper,dlmc:paper,pafs:paper"
	case "none":
		c.Select = corpus.DLP(0, 0)
		methods = "gibbs,gwg,dula,dmala"
	default:
		return Config{}, nil, "", fmt.Errorf("preset %q: choose one of %s", name, strings.Join(Presets(), ", "))
	}
	return c, base, methods, nil
}

// ParseVariants reads samplers with commas between them, each with settings
// of its own or options of a fill, or "paper" for the papers'. It also takes
// a name for tables, which is otherwise the sampler's text:
//
//	gibbs,gwg:paper,dmala:paper,step-size=0.1,dmala:balance=sqrt,name=mine
//
// All other settings come from base.
func ParseVariants(text string, base []ask.Given) ([]variant, error) {
	list, err := option.ParseNamed(text)
	if err != nil {
		return nil, err
	}
	var variants []variant
	for _, named := range list {
		v, err := parseVariant(named, base)
		if err != nil {
			return nil, err
		}
		same := func(w variant) bool { return w.Name == v.Name }
		if slices.ContainsFunc(variants, same) {
			return nil, fmt.Errorf("two samplers are called %q: give one of them another name with NAME:name=OTHER",
				v.Name)
		}
		variants = append(variants, v)
	}
	return variants, nil
}

func checkName(name string) error {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.ContainsAny(name, "|:\"") || strings.ContainsFunc(name, control) {
		return fmt.Errorf("name: %q may hold neither a bar, a colon, quotes nor control characters", name)
	}
	return nil
}

// parseVariant makes a variant of one sampler, see ParseVariants. Its settings
// are those of base, then the paper's, then its own; a later one replaces an
// earlier one.
func parseVariant(named option.Named, base []ask.Given) (variant, error) {
	v := variant{Name: named.String()}
	name, ok := named.Take("name")
	if ok {
		err := checkName(name)
		if err != nil {
			return v, fmt.Errorf("%q: %w", v.Name, err)
		}
		v.Name = name
	}
	sampler, err := ask.MustFind("sampler").Given(named.String())
	if err != nil {
		return v, fmt.Errorf("%q is not %w", named, err)
	}
	method, err := ask.Decide(base, []ask.Given{sampler})
	if err != nil {
		return v, fmt.Errorf("%q: %w", v.Name, err)
	}
	v.Chains = ask.Chains(method.(infill.Chains)) // a sampler is among the options
	err = Config{Chains: 1}.request(v).Check()
	if err != nil {
		return v, fmt.Errorf("%q: %w", v.Name, err)
	}
	return v, nil
}

func (c Config) Validate() error {
	switch {
	case len(c.Samplers) == 0:
		return errors.New("no sampler: name at least one")
	case c.Chains < 1:
		return fmt.Errorf("%d samples: choose at least 1", c.Chains)
	case c.Top < 1 || c.Top > c.Chains:
		return fmt.Errorf("top %d: choose a number from 1 to that of the samples, %d", c.Top, c.Chains)
	case c.Metrics.Confidence == 0:
		return &metrics.OptionError{Option: "confidence", Reason: "0 is not a number between 0 and 1"}
	}
	selection := c.Select
	selection.Sentences = c.Sentences
	if err := cmp.Or(selection.Validate(), c.metrics().Validate()); err != nil {
		return err
	}
	for _, v := range c.Samplers {
		err := c.request(v).Check()
		if err != nil {
			return fmt.Errorf("sampler %s: %w", v.Name, err)
		}
	}
	return nil
}
