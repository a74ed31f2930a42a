// Package metrics scores generated sentences: corpus BLEU against references,
// self-BLEU, unique and distinct n-grams, repetition and likelihood, each with
// a confidence interval and a signature.
//
// # Definitions
//
// BLEU is NLTK's corpus_bleu (Papineni et al. 2002): clipped matches and totals
// are summed over the sentences before they are divided. A match is clipped by
// the largest count in a single reference. The reference length of a sentence
// is the closest length (the shorter of two equally close). A sentence shorter
// than n tokens adds 1 to the total of n-grams. A length without any match has
// the precision 2^-1022 unless smoothed, so that the score is 1e-76 rather than
// 0. Self-BLEU (Zhu et al. 2018, "Texygen") is the corpus BLEU in which the references of each sentence are all other
// sentences, of all prompts together. Unique n-grams (Wang & Cho 2019,
// nyu-dl/bert-gen) are a share of all n-grams: against a reference, the
// different n-grams that the reference lacks; against the sentences
// themselves, the n-grams that occur exactly once. All scores but
// likelihoods are in percent.
//
// # Intervals
//
// Intervals are the jackknife's: it leaves out every sentence in turn, and
// computes the uncertainty of the score from the changes (Tukey 1958). If
// several sentences belong to one prompt, it leaves out whole prompts, because
// the samples of a prompt are not independent. If there are more than 200
// prompts or sentences, it leaves out groups of them. The interval has, on each
// side of the score, a number of standard errors by Student's t. It holds for
// the score of as many sentences of the same kind: some scores, such as
// self-BLEU, grow with the number of sentences.
//
// Self-BLEU, unique, distinct and repeated are pooled: they compare sentences
// with each other. The jackknife counts a joint effect of two sentences twice,
// and a joint effect of k sentences k times (Efron and Stein 1981). So it also
// leaves out pairs, up to 400 of them, and makes half of the correction of
// Efron and Stein: their full correction would count effects of three and more
// sentences too little. Drawing with replacement, as the bootstrap does, would
// put copies into the sample, and copies would be references of each other.
//
// A simulation over fresh texts of the same kind checks this
// (TestPooledIntervalsCover; figures of 80 texts, one standard error 2.5 %).
// With 20 prompts of 5 samples the standard errors of self-BLEU, unique and
// distinct 2-grams come out at 4.1, 3.2 and 2.4 where the truth is 4.2, 3.2 and
// 2.6, and 95 % intervals cover the expected score in 95, 95 and 93 % of texts;
// with 40 prompts in 93, 96 and 94 %; with 150 single sentences in 94, 96 and
// 95 %. If only a handful of 4-grams match, no interval of an unsmoothed BLEU
// is reliable, and a warning says so. A few n-grams decide a score near 0 or
// 100 %: its interval is too short.
package metrics
