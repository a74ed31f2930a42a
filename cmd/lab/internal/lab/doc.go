// Package lab compares samplers on distributions that are known exactly, side by side, on one target, from the same
// starts, repeats figures of papers, and learns models with samplers. All are a [Study]: a table of cells, a runner and
// a report. It knows nothing of language and nothing of terminals; docs/reference/laboratory.md defines the numbers.
//
// Every mean stands with its standard error from the spread between chains, which are independent where steps are not,
// or between repetitions. It is absent for fewer than two: it is then unknown, not zero. Seconds are processor time of
// the steps alone, without observing (wall-clock time where the system does not tell the former); run nothing beside a
// comparison in the same process. They are the only numbers that differ between two runs of one seed.
package lab
