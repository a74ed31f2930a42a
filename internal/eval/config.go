// Package eval runs samplers over sentences of corpora and compares them. It follows section 7.5 and table 3 of the
// discrete Langevin paper (Zhang, Liu and Liu, ICML 2022), and the protocol of the DISCS benchmark (Goshvadi et al.,
// NeurIPS 2023).
//
// A run is a folder of three files. run.json holds the configuration and the versions of models and program.
// samples.jsonl has one line for each sentence and method, written and synced as soon as its fill is done. metrics.json
// holds the scores. If a process is killed, the user can start the same run again to finish it. metrics.json then has
// the same bytes, because it depends neither on time nor on the order of the work.
package eval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"infill/infill"
	"infill/internal/eval/corpus"
	"infill/metrics"
	"infill/samplers"
)

// Config holds the user's choices that change the numbers of a run, except for models and corpora. run.json identifies
// models and corpora by their content.
type Config struct {
	Preset    string    `json:"preset"`   // one of Presets()
	Samplers  []variant `json:"samplers"` // names are unique
	Sentences int       `json:"sentences" flag:"sentences" help:"of all corpora together"`
	// Select says which sentences of each corpus to mask, and how. Its fields Sentences and Seed are not used:
	// corpusInfo.Masked and Config.Seed replace them.
	Select corpus.SelectOptions `json:"select"`
	// Chains is the number of chains for each sentence.
	Chains int `json:"samples" flag:"samples" short:"n" help:"chains of each sentence, each of which ends in one sample"`
	// Top is the number of each sentence's likeliest final states for the first set of scores, methodResult.Top.
	Top     int           `json:"top" flag:"top" short:"k" help:"likeliest samples of each sentence to score"`
	Metrics metricsConfig `json:"metrics"`
	Seed    uint64        `json:"seed" flag:"seed" help:"start of all random numbers: sentences, masks, chains, resampling"`
}

// metricsConfig holds the options that change the scores of given samples.
type metricsConfig struct {
	Tokenisation metrics.Tokenisation `json:"tokenisation"`
	UnionFirst   int                  `json:"union_first" flag:"union-first" help:"limit corpus BLEU to the first N sentences of each corpus; 0 is all"`
	// KeepSources keeps the masked sentences in the references.
	KeepSources bool    `json:"keep_sources" flag:"keep-sources" help:"keep the masked sentences in the references"`
	Confidence  float64 `json:"confidence" flag:"confidence" help:"of the intervals, between 0 and 1"`
}

// metrics returns the options of the scores, without Sources, the masked sentences.
func (c Config) metrics() metrics.Options {
	m := c.Metrics
	return metrics.Options{Tokenisation: m.Tokenisation, UnionFirst: m.UnionFirst,
		Confidence: m.Confidence, Seed: c.Seed}
}

// variant is a sampler with its settings, and its name in tables.
type variant struct {
	Name     string   `json:"name"`
	Settings Settings `json:"settings"`
}

// Settings are the settings of the chains of a method.
type Settings struct {
	Chains      infill.Chains `json:"chains"`
	Temperature float64       `json:"temperature"`
}

// options returns the options for a fill by the variant v. The fill keeps every chain's final state, repeats included.
func (c Config) options(v variant) infill.Options {
	o := infill.DefaultOptions()
	// The papers let a slot take every token.
	o.Fill = infill.FillAny
	chains := v.Settings.Chains
	o.Chains, o.Temperature = &chains, v.Settings.Temperature
	o.Samples, o.Top, o.Rank, o.Seed = c.Chains, c.Chains, infill.RankFinal, c.Seed
	return o
}

// paper changes the settings of a sampler to those of the papers on text: the whole vocabulary, proposals from the
// square root of the whole gradient, no adaptation. The step sizes are those of the authors' code for categorical
// variables, because the paper gives no step sizes for text.
func paper(s *infill.Chains) {
	s.Candidates = 0
	switch s.Sampler {
	case "gibbs", "mlm-mh":
		s.WarmUp = 0
	case "gwg", "gwg-x", "pafs":
		s.WarmUp, s.Balance, s.Gradient = 0, "sqrt", "full"
	case "dula":
		s.WarmUp, s.Balance, s.Gradient, s.StepSize = 0, "sqrt", "full", 0.1
	case "dmala":
		s.WarmUp, s.Balance, s.Gradient, s.StepSize = 0, "sqrt", "full", 0.2
	case "acs":
		s.Gradient = "full"
	default: // adaptive samplers need the warm-up
		s.Balance, s.Gradient = "sqrt", "full"
	}
}

// Presets lists the protocols, the default first: of the discrete Langevin paper, of DISCS, and no protocol.
func Presets() []string { return []string{"dlp", "discs", "none"} }

// Preset returns the configuration of one of Presets(), without models, samplers and corpora. base holds the settings
// that its samplers share, and methods its samplers as ParseVariants reads them.
func Preset(name string) (c Config, base Settings, methods string, err error) {
	o := infill.DefaultOptions()
	base = Settings{infill.DefaultChains(infill.Samplers()[0]), o.Temperature}
	c = Config{
		Preset: name, Sentences: 20, Chains: 25, Top: o.Top, Seed: 1,
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
		base.Chains.Initial.Kind = infill.StartShared
		methods = "gwg:paper,dmala:paper,dmala-adaptive:paper,dlmc:paper,pafs:paper"
	case "none":
		c.Select = corpus.DLP(0, 0)
		methods = "gibbs,gwg,dula,dmala"
	default:
		return Config{}, base, "", fmt.Errorf("preset %q: choose one of %s", name, strings.Join(Presets(), ", "))
	}
	return c, base, methods, nil
}

// ParseVariants reads samplers as samplers.ParseList does, each with settings of its own or options of a fill. It also
// takes "paper" for the papers' settings, and a name for tables, which is otherwise the sampler's text:
//
//	gibbs,gwg:paper,dmala:paper,step-size=0.1,dmala:balance=sqrt,name=mine
//
// All other settings come from base.
func ParseVariants(text string, base Settings) ([]variant, error) {
	specs, err := samplers.ParseList(text)
	if err != nil {
		return nil, err
	}
	var variants []variant
	for _, spec := range specs {
		v := variant{Name: spec.String(), Settings: base}
		if name, named := spec.Take("name"); named {
			if strings.ContainsAny(name, "|:\"") ||
				strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return nil, fmt.Errorf("%q: name: %q may hold neither a bar, a colon, quotes nor control characters",
					v.Name, name)
			}
			v.Name = name
		}
		if _, given := spec.Take("paper"); given {
			v.Settings.Chains.Sampler = spec.Name
			paper(&v.Settings.Chains)
		}
		o := Config{Chains: 1}.options(v)
		if err := o.Take(spec); err != nil {
			return nil, fmt.Errorf("%q is not %w", spec, err)
		}
		if err := o.Validate(); err != nil {
			return nil, fmt.Errorf("%q: %w", v.Name, err)
		}
		v.Settings = Settings{*o.Chains, o.Temperature}
		if slices.ContainsFunc(variants, func(w variant) bool { return w.Name == v.Name }) {
			return nil, fmt.Errorf("two samplers are called %q: give one of them another name with NAME:name=OTHER",
				v.Name)
		}
		variants = append(variants, v)
	}
	return variants, nil
}

// Validate returns an error for a configuration that no run can have.
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
		if o := c.options(v); o.Validate() != nil {
			return fmt.Errorf("sampler %s: %w", v.Name, o.Validate())
		}
	}
	return nil
}
