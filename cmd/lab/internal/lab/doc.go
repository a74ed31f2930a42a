// Package lab compares samplers on distributions that are known exactly: several
// kernels of the package samplers side by side, on one target, from the same
// starts, with what the papers report of them. [Compare] runs one comparison,
// [RunPreset] repeats a figure of a paper, [FitARM] fits independent slots. It
// knows nothing of language and nothing of terminals; docs/reference/laboratory.md defines every
// number of a [Report].
//
// Every mean stands with its standard error from the spread between chains, which
// are independent where steps are not. It is absent for fewer than two chains: it
// is then unknown, not zero. Seconds are processor time of the steps alone, without
// observing (wall-clock time where the system does not tell the former); run
// nothing beside a comparison in the same process. They are the only numbers that
// differ between two runs of one seed.
package lab
