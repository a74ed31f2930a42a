package lab

// RowsOf returns copies of those rows of a table that which lists.
func RowsOf[T any](table []T, width int, which []int) []T {
	list := make([]T, 0, len(which)*width)
	for _, i := range which {
		list = append(list, table[i*width:(i+1)*width]...)
	}
	return list
}

// Batches draws rows of the data, in a new random order each epoch.
type Batches struct {
	Data        []int
	Slots, Size int
	order       []int
	epoch       int
}

// At returns the batch of an update, from 1.
func (d *Batches) At(b *Bench, update int) []int {
	examples := len(d.Data) / d.Slots
	size := min(d.Size, examples)
	perEpoch := examples / size
	epoch := (update - 1) / perEpoch
	place := (update - 1) % perEpoch
	if d.order == nil || epoch != d.epoch {
		d.epoch = epoch
		d.order = b.Stream("epoch " + Decimal(float64(epoch))).Perm(examples)
	}
	return RowsOf(d.Data, d.Slots, d.order[place*size:(place+1)*size])
}

// ReportsOf returns what is true for about n updates, and for the last.
func ReportsOf(updates, n int) func(update int) bool {
	every := max(1, updates/n)
	return func(update int) bool { return update%every == 0 || update == updates }
}
