package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"infill/infill"
	"infill/internal/rawjson"
	"infill/samplers"
)

// Chains are options of chains as JSON stores them.
type Chains infill.Chains

var (
	_ json.Marshaler   = Chains{}
	_ json.Unmarshaler = (*Chains)(nil)
)

// MarshalJSON writes the options that are set as an object of texts, and the length of
// chains and the number of candidates always: a stored configuration keeps its bytes.
func (c Chains) MarshalJSON() ([]byte, error) {
	if c.Sampler != nil && !samplers.BuiltIn(c.Sampler) {
		return nil, fmt.Errorf("the sampler %s is of another module: JSON cannot name it", c.Sampler.Describe().Name)
	}
	given := infill.Chains(c)
	settled := given
	options.Settle(&settled)
	set := options.Facts(given)
	texts := map[string]string{}
	for i, f := range options.Facts(settled) {
		always := f.Name == "steps" || f.Name == "candidates"
		if f.Text != "" && f.Text != "auto" && (always || f == set[i]) {
			texts[strings.ReplaceAll(f.Name, "-", "_")] = f.Text
		}
	}
	return json.Marshal(texts)
}

func (c *Chains) UnmarshalJSON(text []byte) error {
	v, err := rawjson.Read(text)
	if err != nil {
		return err
	}
	given, rest, err := options.Read(v.Object(), func(string) bool { return false })
	if err != nil {
		return OptionError(err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s is no option of chains", rest[0].Key)
	}
	m, err := Decide(given)
	if err != nil {
		return err
	}
	chains, ok := m.(infill.Chains) // a value that JSON gave a name
	if !ok {
		return errors.New("the options name no sampler")
	}
	*c = Chains(chains)
	return nil
}
