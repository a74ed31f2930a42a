package tokenize_test

import (
	"testing"

	"infill/tokenize"
)

// Fills of an uncased model get the capitals that a reader would write.
func TestCapitals(t *testing.T) {
	tokenizer := loadBuiltin(t)
	for _, c := range []struct {
		template, want string
		words          []string
	}{
		{`He asked: "[MASK] is it?"`, `He asked: "What is it?"`, []string{"what"}},
		{`He asked, "[MASK] is it?"`, `He asked, "What is it?"`, []string{"what"}},
		{`He asked: “[MASK] is it?”`, `He asked: “What is it?”`, []string{"what"}},
		{`He asked, «[MASK] is it?»`, `He asked, «What is it?»`, []string{"what"}},
		{`He asked, „[MASK] is it?“`, `He asked, „What is it?“`, []string{"what"}},
		{`"[MASK] are you?" he said.`, `"Where are you?" he said.`, []string{"where"}},
		{`The word "[MASK]" is short.`, `The word "what" is short.`, []string{"what"}},
		{`The words "cat", "[MASK]" and "Dog".`, `The words "cat", "cow" and "Dog".`, []string{"cow"}},
		{`He stopped. "[MASK] is it?"`, `He stopped. "What is it?"`, []string{"what"}},
		{`AT [MASK] [MASK] OF ROME`, `AT THE END OF ROME`, []string{"the", "end"}},
		{`THE [MASK] [MASK] OF ROME`, `THE OLD GATES OF ROME`, []string{"old", "gates"}},
		{`GO TO [MASK] .`, `GO TO HOME .`, []string{"home"}},
		{`The sign said: GO TO [MASK] IN MY car.`, `The sign said: GO TO SLEEP IN MY car.`, []string{"sleep"}},
		{`So it was: A [MASK] I saw.`, `So it was: A house I saw.`, []string{"house"}},
		{`The Lord Of The [MASK]`, `The Lord Of The Castle`, []string{"castle"}},
		{`The [MASK] Of The Rings`, `The Lord Of The Rings`, []string{"lord"}},
		{`The lord of the [MASK]`, `The lord of the castle`, []string{"castle"}},
		{`Mary met Paul [MASK] .`, `Mary met Paul today .`, []string{"today"}},
		{`He joined the Royal Canadian Mounted [MASK].`, `He joined the Royal Canadian Mounted Police.`, []string{"police"}},
		{`he went [MASK] .`, `he went home .`, []string{"home"}},
	} {
		template, err := tokenizer.Template(c.template)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, word := range c.words {
			ids = append(ids, lookUp(t, tokenizer, word)...)
		}
		if got := template.Fill(ids); got.Text != c.want {
			t.Errorf("%s: %s, want %s", c.template, got.Text, c.want)
		}
	}
}

// TestLike: there are four ways to write a word, and a fill has that of its original.
func TestLike(t *testing.T) {
	for _, c := range []struct{ word, other, want string }{
		{"door", "gate", "door"}, {"door", "Gate", "Door"}, {"door", "GATE", "DOOR"}, {"école", "ÉCOLE", "ÉCOLE"},
		{"neil", "O'NEIL", "NEIL"}, {"phone", "iPhone", "phone"}, {"smith", "McDonald", "Smith"}, {"we", "I", "We"},
		{"Rome", "city", "Rome"}, {"門", "Gate", "門"}, {"a", "'TIS", "A"},
	} {
		if got := tokenize.Like(c.word, c.other); got != c.want {
			t.Errorf("%s like %s is %s, want %s", c.word, c.other, got, c.want)
		}
	}
	tokenizer := loadBuiltin(t)
	for _, c := range []struct{ template, original, fill, want string }{
		{"DO [MASK] enter here", "NOT", "please", "DO PLEASE enter here"},
		{"I [MASK] this film", "LOVE", "like", "I LIKE this film"},
		{"DO NOT [MASK] here", "enter", "sit", "DO NOT sit here"},
		{"WHAT DO [MASK] SEE", "I", "we", "WHAT DO WE SEE"},
		{"the [MASK] school", "ÉCOLE", "old", "the OLD school"},
		{"The Lord [MASK] The Rings", "of", "with", "The Lord with The Rings"},
	} {
		template, err := tokenizer.Template(c.template)
		if err != nil {
			t.Fatal(err)
		}
		template.Originals = []string{c.original}
		if got := template.Fill(lookUp(t, tokenizer, c.fill)); got.Text != c.want {
			t.Errorf("%s for %s: %s, want %s", c.template, c.original, got.Text, c.want)
		}
	}
}
