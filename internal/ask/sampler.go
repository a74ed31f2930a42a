package ask

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"infill/infill"
	"infill/internal/option"
	"infill/samplers"
)

// samplerType reads and writes the samplers of chains. Chains.check looks at the sampler.
type samplerType struct{}

var _ option.Writer = samplerType{}

func (samplerType) Text(value any) string {
	w, ok := value.(written)
	if ok {
		return w.text
	}
	return samplers.Text(value.(samplers.Sampler))
}

func (samplerType) Schema() option.Schema { return option.Schema{Kind: "string", Values: Samplers()} }

// Read returns a written sampler, as in dmala:step-size=0.4.
func (samplerType) Read(text string) (any, error) {
	named, err := option.ParseOne(text)
	if errors.Is(err, option.ErrTwice) {
		return nil, fmt.Errorf("a sampler: %w", err)
	}
	if err != nil {
		return nil, errors.New("a sampler, as in dmala:step-size=0.4,balance=sqrt")
	}
	if !slices.Contains(Samplers(), named.Name) {
		return nil, errors.New("one of " + strings.Join(Samplers(), ", "))
	}
	w := written{text: text}
	_, papers := named.Take("paper")
	if papers {
		w.preset, err = paper(named.Name)
		if err != nil {
			return nil, err
		}
	}
	own := option.Named{Name: named.Name}
	for _, setting := range named.Settings {
		o, known := Find(setting.Name)
		// The number of samples and their rank are no settings of a sampler.
		if !known || !o.In(infill.MethodChains) || o.In(infill.MethodDraws) && o.Name != "temperature" {
			own.Settings = append(own.Settings, setting)
			continue
		}
		g, err := o.Given(setting.Value)
		if err != nil {
			return nil, fmt.Errorf("a sampler with its settings: %s: %q is not %w", setting.Name, setting.Value, err)
		}
		w.given = append(w.given, g)
	}
	w.sampler, err = samplers.Parse(own.String())
	if err != nil {
		return nil, fmt.Errorf("a sampler with its settings: %w", err)
	}
	return w, nil
}

// written is a sampler as written, with options that unfolded gives apart.
type written struct {
	text    string
	sampler samplers.Sampler
	preset  []Given // of the papers
	given   []Given // in the text
}

var _ samplers.Sampler = written{}

func (w written) Kernel(target samplers.Target, shared *rand.Rand) (samplers.Kernel, error) {
	return w.sampler.Kernel(target, shared)
}

func (w written) Describe() samplers.Description { return w.sampler.Describe() }
