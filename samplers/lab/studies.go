package lab

// Studies lists the experiments of many cells, with their default settings, which
// take minutes.
func Studies() []*Study {
	return []*Study{
		newLearnIsing(),
		newNetworks(),
		newLearnContacts(),
	}
}
