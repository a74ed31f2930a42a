package papers

import "slices"

// A Run is a stored result with the command that makes it.
type Run struct {
	Name    string // of the file
	Command string // behind go run ./cmd/lab, without --seed 1
	// Small is what to add to the command to make a part of the result again,
	// in less time; "" makes all of it.
	Small string
	// Random says that each repetition has another target, drawn at random.
	Random bool
	// NotRun says why the command has not been run; "" if its result is stored.
	NotRun string
	// Needs says what the command needs that the repository does not have.
	Needs string
}

// Runs returns the stored results.
func Runs() []Run {
	return []Run{
		{Name: "fhmm",
			Command: "fhmm --chains 10 --steps 5000 --repeats 10 --initial independent --samplers gibbs," +
				"gibbs-x:block=2,hamming-ball:block=10,radius=1,gwg,gwg-x:radius=5,dmala",
			Small: "--repeats 2 --samplers gibbs,gwg", Random: true},
		{Name: "cost",
			Command: "ising --coupling 0.1 --field 0.2 --chains 10 --steps 10000 --warm-up 0 --repeats 10 " +
				"--samplers gibbs-x:block=1,gwg,dula:step-size=0.4,dmala:step-size=0.8",
			Small: "--repeats 2"},
		{Name: "networks-500",
			Command: "networks --data election --repeats 5 --samplers dula:step-size=0.2," +
				"dula:step-size=0.2,terms=10,dula:step-size=0.2,terms=100,dula:step-size=0.2," +
				"terms=500",
			Small: "--repeats 1"},
		{Name: "dlp-appendix-d",
			Command: "rbm --data none --visible 784 --hidden 500 --scale 0.2236 --warm-up 200 --steps 50 " +
				"--reference-steps 5 --repeats 10 --samplers dmala:step-size=inf,dmala:step-size=0.4",
			Small: "--repeats 2", Random: true},
		{Name: "rbm-small",
			Command: "rbm --data none --visible 100 --hidden 50 --scale 0.2236 --reference block-gibbs " +
				"--reference-steps 200 --chains 30 --steps 300 --warm-up 0 --repeats 10 --samplers " +
				"rbm-gibbs,gibbs-x:block=1,gwg,r-mala:step-size=0.2,smoothing=0.5," +
				"r-hmc:step-size=0.2,smoothing=0.5,d-svgd:step-size=0.3,smoothing=0.5",
			Small: "--repeats 2 --samplers rbm-gibbs,gwg", Random: true},
		{Name: "learn-ising", Command: "learn ising --repeats 5", Small: "--repeats 1 --samplers gwg --steps 1"},
		{Name: "learn-ising-random",
			Command: "learn ising --graph random --steps 1,5 --repeats 10",
			Small:   "--repeats 1 --samplers gwg --steps 1", Random: true},
		{Name: "rbm-random",
			Command: "rbm --data none --visible 784 --hidden 500 --scale 0.2236 --reference block-gibbs " +
				"--reference-steps 40 --chains 20 --steps 300 --warm-up 0 --repeats 10 --samplers " +
				"rbm-gibbs,gibbs-x:block=1,gibbs-x:block=2,hamming-ball:block=10,radius=1,gwg," +
				"gwg-x:radius=5,r-mala:step-size=0.2,smoothing=0.5,r-hmc:step-size=0.2,smoothing=0.5," +
				"d-svgd:step-size=0.3,smoothing=0.5,dula:step-size=0.2,dmala:step-size=0.4",
			Small: "--repeats 2 --samplers gwg", Random: true},
		{Name: "learn-contacts",
			Command: "learn contacts --repeats 10",
			Small:   "--repeats 1 --steps 1", Random: true},
		{Name: "dlp-figure-3", Command: "--preset dlp-figure-3"},
		{Name: "dlp-figure-2", Command: "--preset dlp-figure-2"},
		{Name: "dlp-figure-7", Command: "--preset dlp-figure-7"},
		{Name: "dlp-appendix-h", Command: "--preset dlp-appendix-h"},
		{Name: "dlp-figure-1", Command: "--preset dlp-figure-1"},
		{Name: "gwg", Command: "ising --samplers gibbs,gwg:balance=sqrt,gwg:balance=1,gwg:gradient=none"},
		{Name: "gwg-ising",
			Command: "ising --size 10x10 --coupling 0.1 --field 0 --chains 100 --steps 5000 --warm-up 0 " +
				"--samplers gibbs-x:block=1,gibbs-x:block=2,hamming-ball:block=10,radius=1,gwg," +
				"gwg-x:radius=3,gwg-x:radius=5",
			Small: "--samplers gwg"},
		{Name: "arm-toy", Command: "arm toy", Small: "--repeats 1"},
		{Name: "dlp-figure-4-digits",
			Command: "rbm --data digits --hidden 500 --learning-rate 0.001 --chains 100 --steps 300 " +
				"--warm-up 0 --samplers rbm-gibbs,gibbs-x:block=1,gwg,dula:step-size=0.2," +
				"dmala:step-size=0.4"},
		{Name: "arm-gradients",
			Command: "arm gradients --repeats 10",
			Small:   "--repeats 1 --estimators arm,ar,legrad", Random: true},
		{Name: "networks-breast-cancer",
			Command: "networks --data breast-cancer --chains 5 --steps 60 --repeats 5",
			Small:   "--repeats 1"},
		{Name: "networks", Command: "networks --data diabetes,election --repeats 5", Small: "--repeats 1"},
		{Name: "networks-unit",
			Command: "networks --inputs unit --data diabetes,election --repeats 5",
			Small:   "--repeats 1"},
		{Name: "dlp-figure-4-steps",
			Command: "rbm --data none --visible 784 --hidden 500 --scale 0.2236 --reference block-gibbs " +
				"--reference-steps 40 --chains 100 --steps 5000 --warm-up 0 --samplers rbm-gibbs," +
				"gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.4",
			Small: "--samplers rbm-gibbs", Random: true},
		{Name: "rbm-steps",
			Command: "rbm --data none --visible 784 --hidden 500 --scale 0.2236 --reference block-gibbs " +
				"--reference-steps 40 --chains 20 --steps 5000 --warm-up 0 --repeats 10 --samplers " +
				"rbm-gibbs,gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.4",
			Small: "--repeats 2 --samplers rbm-gibbs", Random: true},
		{Name: "learn-images", Command: "learn images --repeats 5", Small: "--repeats 1 --samplers gwg"},
		{Name: "text", Command: "text --samplers all --chains 10 --steps 40000"},
		{Name: "ais", Command: "ais", Small: "--repeats 2"},
		{Name: "dlp-figure-3-grid", Command: "--preset dlp-figure-3-grid"},
		{Name: "learn-text", Command: "learn text --repeats 5", Small: "--repeats 1 --samplers gwg"},
		{Name: "sizes-learn-images",
			Command: "learn images --features 64 --blocks 8 --batch 100 --buffer 10000 --steps 40 " +
				"--updates 5 --warm-up 0 --ais-steps 1 --ais-chains 2 --samplers gwg," +
				"dula:step-size=0.2,dmala:step-size=0.3 --repeats 1",
			Small: "--samplers dula:step-size=0.2"},
		{Name: "sizes-arm-vae",
			Command: "arm vae --estimators arm --bits 200 --hidden 200 --learning-rate 0.0001 --updates " +
				"300 --particles 1 --repeats 1"},
		{Name: "sizes-arm-vae-halves",
			Command: "arm vae --estimators arm --structures halves --bits 200 --batch 100 --learning-rate " +
				"0.0001 --updates 300 --particles 1 --repeats 1"},
		{Name: "sizes-learn-contacts",
			Command: "learn contacts --size 10x10 --states 21 --batch 256 --buffer 256 --updates 5 " +
				"--steps 20,50 --data 256 --data-sweeps 1 --samplers gibbs,gwg --repeats 1",
			Small: "--samplers gwg --steps 20"},
		{Name: "arm-vae-halves",
			Command: "arm vae --structures halves --updates 5000 --repeats 5 --estimators arm,reinforce," +
				"leave-one-out,muprop,straight-through,annealed-st,darn,st-gumbel",
			Small: "--repeats 1 --estimators arm"},
		{Name: "sizes-learn-ising",
			Command: "learn ising --size 25x25 --batch 256 --buffer 256 --updates 5 --steps 5,10,25,50," +
				"100 --data 256 --data-sweeps 1 --repeats 1",
			Small: "--samplers gwg --steps 5"},
		{Name: "learn-images-grey",
			Command: "learn images --levels 17 --learning-rate 0.0002 --repeats 5 --samplers gwg," +
				"dula:step-size=0.2,dmala:step-size=0.3",
			Small: "--repeats 1 --samplers gwg"},
		{Name: "arm-vae", Command: "arm vae --repeats 5", Small: "--repeats 1 --estimators arm"},
		{Name: "dlp-figure-4-grid", Command: "--preset dlp-figure-4-grid"},
		{Name: "infilling", Command: "infilling --run run --corpus tbc=tbc.5k.txt --corpus wt103=wiki103.5k.txt",
			Needs: "the run of infill eval --preset dlp, with its two corpora"},
		{Name: "infilling-grid", Command: "infilling --run grid --corpus tbc=tbc.5k.txt --corpus wt103=wiki103.5k.txt",
			Needs: "the run of infill eval over step sizes and balances, with its two corpora"},
		{Name: "calibration", Command: "calibration --texts tbc.5k.txt,wiki103.valid.sents.txt --sentences 4000",
			Needs: "the two texts"},
		{Name: "joints", Command: "joints --texts tbc.5k.txt,wiki103.valid.sents.txt",
			Needs: "the two texts"},
		{Name: "model", Command: "model --models small-uncased,revision2 --texts wiki103.valid.sents.txt,tbc.5k.txt",
			Needs: "the two texts and revision 2 of the model"},
		{Name: "proofs", Command: "proofs --texts tbc.5k.txt,wiki103.valid.sents.txt", Needs: "the two texts"},
	}
}

// runOf returns the run of that name.
func runOf(name string) (Run, bool) {
	list := Runs()
	at := slices.IndexFunc(list, func(r Run) bool { return r.Name == name })
	if at < 0 {
		return Run{}, false
	}
	return list[at], true
}
