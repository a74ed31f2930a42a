package models

import (
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
)

//go:embed recommended.tsv
var recommendedTable string

// Recommendation is a published model that has a short name here.
type Recommendation struct {
	Name       string  `json:"name"` // short: every command takes it for Repository
	Repository string  `json:"repository"`
	Languages  string  `json:"languages"`
	Parameters int     `json:"parameters_millions"`
	Megabytes  int64   `json:"megabytes"` // to fetch
	Licence    string  `json:"licence"`
	Time       float64 `json:"time"`    // of a row, against that of the built-in model
	Quality    string  `json:"quality"` // from a paper, which it names
}

// Recommended lists the models of recommended.tsv, whose head says where its numbers come from.
func Recommended() []Recommendation {
	reader := csv.NewReader(strings.NewReader(recommendedTable))
	reader.Comma, reader.Comment = '\t', '#'
	rows, err := reader.ReadAll()
	if err != nil {
		panic(err) // a slip in the program, as a number that is none is
	}
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	list := make([]Recommendation, len(rows))
	for i, r := range rows {
		list[i] = Recommendation{Name: r[0], Repository: r[1], Languages: r[2], Parameters: int(number(r[3])),
			Megabytes: int64(number(r[4])), Licence: r[5], Time: number(r[6]), Quality: r[7]}
	}
	return list
}
