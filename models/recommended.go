package models

import (
	_ "embed"
	"encoding/json"
)

//go:embed recommended.json
var recommended []byte

// Recommendation is a published model that has a short name here. Its Time is that of BERT-base in
// docs/measured/models.md (104 rows a second against 12), and of other shapes by their rows
// against BERT-base's there.
type Recommendation struct {
	Name       string  `json:"name"` // short: every command takes it for Repository
	Repository string  `json:"repository"`
	Languages  string  `json:"languages"`
	Parameters int     `json:"parameters_millions"`
	Megabytes  int64   `json:"megabytes"` // to fetch
	Licence    string  `json:"licence"`
	Time       float64 `json:"time"`    // of a row, against that of the built-in model
	Quality    string  `json:"quality"` // from a paper, which it names: the weights were not at hand
}

// Recommended lists models that may be better than the built-in one.
func Recommended() (list []Recommendation) {
	if err := json.Unmarshal(recommended, &list); err != nil {
		panic(err) // a bug in the program
	}
	return list
}
