package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"infill/internal/phrase"
	"infill/internal/serve"
	"infill/tokenize"
)

// endBrowser ends what chromium has started, and removes its files.
var endBrowser = func() error { return nil }

func TestMain(m *testing.M) {
	code := m.Run()
	err := endBrowser()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// chromium starts a headless browser, which all tests share, or returns nil where
// there is none.
var chromium = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-background-networking", true),
			chromedp.Flag("disable-sync", true),
			chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(60*time.Second))...)
		ctx, _ = chromedp.NewContext(ctx)
		endBrowser = func() error { return chromedp.Cancel(ctx) }
		return ctx, chromedp.Run(ctx)
	}
	return nil, nil
})

// browser opens a tab of a headless Chromium, or skips.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: a browser takes seconds to start")
	}
	shared, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	if shared == nil {
		t.Skip("no Chromium here: apt-get install chromium")
	}
	ctx, cancel := chromedp.NewContext(shared)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 6*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// picture keeps what the browser shows in the folder INFILL_PICTURES, where one is
// named: docs/reference/http.md shows some.
func picture(name string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		dir := os.Getenv("INFILL_PICTURES")
		if dir == "" {
			return nil
		}
		var png []byte
		if err := chromedp.FullScreenshot(&png, 100).Do(ctx); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	})
}

// until waits for a condition of the page's.
func until(condition string) chromedp.Action {
	return chromedp.Poll(condition, nil, chromedp.WithPollingTimeout(2*time.Minute),
		chromedp.WithPollingInterval(50*time.Millisecond))
}

const done = `document.getElementById("state").textContent === "done"`

// say types a text instead of what the page has, behind a beginning that is there
// at once.
func say(beginning, text string) chromedp.Tasks {
	return chromedp.Tasks{
		chromedp.Evaluate(fmt.Sprintf(`document.getElementById("template").value = %q;
			document.getElementById("state").textContent = ""; true`, beginning), nil),
		chromedp.SendKeys("#template", text+kb.Enter, chromedp.ByID),
	}
}

// The page finds the blanks that tokenize finds, and a word that is pressed
// stays where it was.
func TestPageBlanks(t *testing.T) {
	ctx := browser(t)
	url := start(t, func(o *serve.Options) { o.Token = "secret" })
	texts := []string{`a [MASK~[dc].*] day`, `a [MASK~a\]b] c`, `[MASK~[]a]] x`, `[MASK~[^]a]] x`, `[MASK~[^^]] x`, `[MASK~[[\]]] x`,
		`\[MASK] [MASK]`, `\____ ____`, `\<mask> <mask>`, `[MASK:2=a~x] [MASKED] [mask] __`, `[MASK~[x] ___ [MASK:1-3]`,
		`[MASK~[[:alpha:]]ave] x`, `[MASK~[^[:space:]]] x`, `[MASK~[a-z[:digit:]]] x`, `[MASK~[[:alpha:]] x`, `[MASK~[[:x]] y]`}
	random, parts := rand.New(rand.NewPCG(1, 2)), []string{"[MASK", "[MASK~", "]", "[", "^", "[:alpha:]", `\`, "~", ":2", "=a", "_", "___", "<mask>",
		" ", "x", "हिन्दी", "\u0301", "'", "’", "-", "\u200c", "é", "9", "日本", "ひ",
		".", "@", "/", "&", ";", "http://", "#", "$", "U.S.", "No. ", "Dr.", "I. ", "<", ">"}
	for range 3000 {
		text := ""
		for range 1 + random.IntN(12) {
			text += parts[random.IntN(len(parts))]
		}
		texts = append(texts, text)
	}
	texts = append(texts, "हिन्दी भाषा बहुत [MASK] है", "the cafe\u0301 and others")
	list, _ := json.Marshal(texts)
	// Each script gives what the text is after the presses.
	presses := []struct{ text, script, want string }{
		{"a [MASK~[dc].*] day", `keep("a christmas day", [[2, 11]], 0)`, "a christmas day"},
		{`a [MASK~a\]b] c`, `keep("a ab c", [[2, 4]], 0)`, "a ab c"},
		{"A [MASK:2] cat sat", `word(2); word(3); keep("A very old dog ran", [[2, 10], [11, 14], [15, 18]], 0); word(3)`,
			"A very old cat [MASK]"},
		{"high[MASK] cat sat", `word(2); word(3); keep("higher dog ran", [[4, 6], [7, 10], [11, 14]], 0); word(2)`,
			"higher [MASK] sat"},
		{"[MASK] cat", `word(1); keep(". dog", [[0, 1], [2, 5]], 0); word(0)`, ". cat"},
		{"[MASK=who~h.*] or [MASK:1=who] and [MASK=x]", `keep("He or he and i", [[0, 2], [6, 8], [13, 14]], 1)`,
			"He or he and [MASK=x]"},
		{"[MASK=who] and [MASK=who]", `showAlone({alone: [[{text: "he", probability: 1}], [{text: "he", probability: 1}]]});
			document.querySelectorAll(".bar")[1].click()`, "he and he"},
		{"the [MASK~^(cat|dog)$] sat", `keep("the cat sat", [[4, 7]], 0); word(1)`, "the [MASK~^(cat|dog)$] sat"},
		{"[MASK=x] or [MASK=x]", `keep("he or he", [[0, 2], [6, 8]], 0); word(0); word(2)`, "[MASK=x] or [MASK=x]"},
		{"a [MASK:2] b", `keep("a new york b", [[2, 10]], 0); word(2)`, "a [MASK:2] b"},
		{"a [MASK:2] b", `keep("a new york b", [[2, 10]], 0); word(1); word(1)`, "a new york b"},
		{"é👍 [MASK] b", `keep("é👍 cat b", [[3, 6]], 0)`, "é👍 cat b"},
		{"the cafe\u0301 sat", `word(1)`, "the [MASK] sat"},
		{"हिन्दी भाषा", `word(1)`, "हिन्दी [MASK]"},
	}
	const steps = `
		var word = i => document.querySelectorAll("#words button")[i].click();
		var keep = (text, spans, i) => {
			show({fills: [{rank: 1, text, spans, probability: 0.5}]});
			document.querySelectorAll("#fills li .text button")[i].click();
		};
		var type = text => { field.value = text; kept.clear(); showWords(); };`
	var found []struct {
		Blanks [][2]int
		Words  []string
	}
	var named []string
	var sections int
	do := chromedp.Tasks{chromedp.Navigate(url), chromedp.Evaluate(steps, nil), chromedp.Evaluate(string(list)+`.map(text => {
		field.value = text;
		const all = pieces();
		return {blanks: all.filter(p => p.blank).map(p => [p.at, p.at + p.text.length]),
			words: all.filter(p => !p.blank).map(p => p.text)};
	})`, &found), chromedp.Evaluate(`type("a [MASK] b [MASK] c"); toggle(0);
		[...document.querySelectorAll("#words button")].map(b => b.getAttribute("aria-label"))`, &named)}
	got := make([]string, len(presses))
	for i, p := range presses {
		text, _ := json.Marshal(p.text)
		do = append(do, chromedp.Evaluate(fmt.Sprintf("type(%s); %s; field.value", text, p.script), &got[i]))
	}
	do = append(do, chromedp.Navigate(url+"/docs"), until(`document.querySelectorAll("section").length > 0`),
		chromedp.Evaluate(`document.querySelectorAll("section").length`, &sections))
	if err := chromedp.Run(ctx, do); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		want := tokenize.BlankSpans(text, "")
		for i := range want { // the page counts in UTF-16
			for end := range want[i] {
				want[i][end] = len(utf16.Encode([]rune(text[:want[i][end]])))
			}
		}
		if !slices.Equal(found[i].Blanks, want) {
			t.Errorf("%q has its blanks at %v, on the page at %v", text, want, found[i].Blanks)
		}
	}
	for i, text := range texts {
		want := []string{}
		for _, span := range tokenize.WordSpans(text, "") {
			want = append(want, text[span[0]:span[1]])
		}
		if !slices.Equal(found[i].Words, want) {
			t.Errorf("%q has the words %q, on the page %q", text, want, found[i].Words)
		}
	}
	if want := []string{"blank 1 for a, press for a word", "blank 2, press for a word", "b, press for a blank",
		"blank 3, press for a word", "c, press for a blank"}; !slices.Equal(named, want) {
		t.Errorf("the words are called %q", named)
	}
	for i, p := range presses {
		if got[i] != p.want {
			t.Errorf("%q is %q after %s, want %q", p.text, got[i], p.script, p.want)
		}
	}
	if sections != 8 {
		t.Errorf("/docs of a server with a token has %d sections, want 8", sections)
	}
}

// An input method composes a word over several keys. Neither its Enter nor a pause
// sends half a word, and the word's end does.
func TestPageComposes(t *testing.T) {
	ctx := browser(t)
	url := start(t, nil)
	var taken, early bool
	key := func(more string) string {
		return `field.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", cancelable: true, bubbles: true` + more + `}))`
	}
	err := chromedp.Run(ctx, chromedp.Navigate(url), until(done), chromedp.Evaluate(`say("");
		field.dispatchEvent(new CompositionEvent("compositionstart")); field.value = "nih [MASK]";
		field.dispatchEvent(new InputEvent("input", {isComposing: true}));`+
		key(", isComposing: true")+" && "+key(", keyCode: 229"), &taken),
		chromedp.Sleep(time.Second), chromedp.Evaluate(`$("state").textContent !== ""`, &early),
		chromedp.Evaluate(`field.value = "he had [MASK] me"; field.dispatchEvent(new CompositionEvent("compositionend")); true`,
			nil),
		until(done))
	if err != nil {
		t.Fatal(err)
	}
	if !taken || early {
		t.Errorf("Enter is left to the input method: %v; half a word is sent: %v", taken, early)
	}
}

// A copied text is announced, the name of a button has its text, and bars have
// one scale, which is named.
func TestPageTells(t *testing.T) {
	ctx := browser(t)
	url := start(t, nil)
	var name, scale, how string
	var widths []string
	err := chromedp.Run(ctx, chromedp.Navigate(url), until(done),
		chromedp.Evaluate(`$("how").textContent`, &how),
		chromedp.Evaluate(`$("copy").getAttribute("aria-label")`, &name),
		chromedp.Evaluate(`showAlone({alone: [[{text: "a", probability: 0.8}], [{text: "b", probability: 0.4}]]});
			[...document.querySelectorAll(".bar i")].map(i => i.style.width)`, &widths),
		chromedp.Evaluate(`$("scale").textContent`, &scale),
		chromedp.Click("#copy", chromedp.ByID), until(`$("state").textContent === "copied"`))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(name, "Copy text") || !slices.Equal(widths, []string{"100%", "50%"}) ||
		scale != "A full bar is 80.0 %." {
		t.Errorf("the button is called %q; bars are %q wide, %q", name, widths, scale)
	}
	_, text := ask(t, url+"/v1/fill", `{"template": "She closed the [MASK] and went to [MASK]."}`)
	found := decode[serve.Result](t, text).Found
	if found == "" || !strings.Contains(how, "; "+found+"; ") {
		t.Errorf("below the fills stands %q, want %q", how, found)
	}
}

// TestPagePercent: the page writes a probability as phrase.Percent does.
func TestPagePercent(t *testing.T) {
	ctx := browser(t)
	random := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, 1e-300, 1e-9, 9.999e-6, 1e-5, 9.96e-5, 1e-4, 9.95e-4, 9.99e-4, 1e-3, 0.0949, 0.5, 0.99951, 1}
	for range 2000 {
		values = append(values, math.Pow(10, -7*random.Float64()))
	}
	list, _ := json.Marshal(values)
	var got []string
	err := chromedp.Run(ctx, chromedp.Navigate(start(t, nil)), chromedp.Evaluate(string(list)+".map(percent)", &got))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range values {
		if got[i] != phrase.Percent(p) {
			t.Errorf("%g is %q on the page, want %q", p, got[i], phrase.Percent(p))
		}
	}
}

// A press is undone by the browser's own key, the address keeps the text, Tab
// stops at one of the words, and each name of a control has its text.
func TestPageKeeps(t *testing.T) {
	ctx := browser(t)
	url := start(t, nil)
	var pressed, undone, again, kept, pinned, unpinned, shared string
	var asked []string
	var stops, moved int
	var unnamed []string
	const unlike = `[...document.querySelectorAll("button[aria-label]")].filter(b =>
		!b.getAttribute("aria-label").includes(b.textContent.replace(/[\[\]]/g, "").trim())).map(b => b.textContent)`
	const text = "50 % of [MASK] & é 🙂"
	value := func(into *string) chromedp.Action { return chromedp.Evaluate(`field.value`, into) }
	undo := chromedp.KeyEvent("z", chromedp.KeyModifiers(input.ModifierCtrl))
	ended := chromedp.Tasks{until(done), chromedp.Sleep(100 * time.Millisecond)}
	err := chromedp.Run(ctx, chromedp.Navigate(url), ended,
		chromedp.Evaluate(`$("words").children[1].click()`, nil), ended, value(&pressed),
		undo, value(&undone), chromedp.KeyEvent("y", chromedp.KeyModifiers(input.ModifierCtrl)), value(&again),
		chromedp.Evaluate(`[...$("words").children].filter(b => b.tabIndex === 0).length`, &stops),
		chromedp.Focus("#words button[tabindex='0']", chromedp.ByQuery),
		chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight),
		chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowRight),
		chromedp.KeyEvent(kb.ArrowLeft),
		chromedp.Evaluate(`[...$("words").children].indexOf(document.activeElement)`, &moved),
		chromedp.Reload(), chromedp.Sleep(time.Second), ended, value(&kept),
		chromedp.Evaluate(`document.querySelector(".bar").click()`, nil), ended, value(&pinned),
		chromedp.Evaluate(unlike, &unnamed),
		undo, value(&unpinned),
		chromedp.Navigate("about:blank"),
		chromedp.Navigate(url+"/#t="+neturl.PathEscape(text)), chromedp.Sleep(time.Second), ended, value(&shared),
		chromedp.Evaluate(`performance.getEntriesByType("resource").map(r => r.name)`, &asked))
	if err != nil {
		t.Fatal(err)
	}
	const before, after = "She closed the [MASK] and went to [MASK].", "She [MASK] the [MASK] and went to [MASK]."
	if pressed != after || undone != before || again != after {
		t.Errorf("a press gives %q, undone %q, and again %q", pressed, undone, again)
	}
	if stops != 1 || moved != 6 {
		t.Errorf("%d words are stops of Tab; the keys lead to word %d", stops, moved)
	}
	if kept != after || strings.Count(pinned, "[MASK]") != 2 || unpinned != after {
		t.Errorf("after a reload the text is %q, a kept word makes it %q, undone %q", kept, pinned, unpinned)
	}
	if shared != text || strings.Contains(strings.Join(asked, ""), "#") {
		t.Errorf("the address gives %q; asked for %q", shared, asked)
	}
	if len(unnamed) > 0 {
		t.Errorf("names without their texts: %q", unnamed)
	}
}

func TestPage(t *testing.T) {
	ctx := browser(t)
	o := options(t)
	o.Limits.Blanks = 6
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	var wide, tooWide, narrow, stale, dim, explained, apart, whole, left bool
	var drawn, full, long string
	var listed int
	var first, template, wrong string
	var bars, words int
	const count = `document.querySelectorAll(%q).length`
	steps := []struct {
		name string
		do   chromedp.Tasks
	}{
		{"it fills what stands there",
			chromedp.Tasks{chromedp.EmulateViewport(1000, 600), chromedp.Navigate(server.URL), until(done),
				picture("page"),
				chromedp.Evaluate(fmt.Sprintf(count, "#alone .bar"), &bars)}},
		{"dark, on a narrow screen",
			chromedp.Tasks{emulation.SetEmulatedMedia().WithFeatures(
				[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
				chromedp.EmulateViewport(360, 600), picture("page-dark"),
				chromedp.Evaluate(
					`document.documentElement.scrollWidth <= innerWidth && getComputedStyle(document.body).color === "rgb(236, 236, 236)"`, &narrow)}},
		// Beside each other or below, with two pixels between: what stands in a
		// line of the fills, a bar, a label, and the screen's edge.
		{"nothing touches",
			chromedp.Tasks{chromedp.Click("#options summary", chromedp.ByQuery), picture("page-drawer"),
				chromedp.Evaluate(`
			[...document.querySelectorAll("main, li, .row, .bar span, .fields")].every(box => {
				const all = [...box.children].map(e => e.getBoundingClientRect()).filter(r => r.width > 1 && r.height > 1);
				return all.every((a, i) => a.right <= innerWidth - 8 && all.slice(0, i).every(b => a.left - b.right >= 2 || b.left - a.right >= 2 || a.top - b.bottom >= -1 || b.top - a.bottom >= -1));
			})`, &apart)}},
		{"a full stop stays with its word",
			chromedp.Tasks{chromedp.Evaluate(`[...document.querySelectorAll("#fills li")].every(li =>
				[...li.querySelectorAll(".whole")].some(e => /[a-z]\.$/.test(e.textContent) && e.offsetHeight < 45))`, &whole)}},
		{"bars and numbers explain themselves",
			chromedp.Tasks{chromedp.Evaluate(`document.querySelector("#alone .bar i").style.width`, &full),
				chromedp.Evaluate(
					`[...document.querySelectorAll("#fills .number, .bar")].every(e => e.title.length > 20 && document.getElementById(e.getAttribute("aria-describedby")))`, &explained)}},
		{"the drawer's options",
			chromedp.Tasks{chromedp.Evaluate(
				`document.querySelector("[name=pos]").value = "noun"; document.querySelector("[name=top]").value = "2"; true`, nil),
				chromedp.SendKeys(`[name=ban]`, "door"+kb.Enter, chromedp.ByQuery),
				until(`document.querySelectorAll("#fills li").length === 2 && ` + done),
				chromedp.Evaluate(fmt.Sprintf(count, "#fills li"), &listed),
				chromedp.Text("#fills ol", &drawn, chromedp.ByQuery),
				chromedp.Evaluate(
					`document.querySelectorAll("#options input, #options select").forEach(f => f.value = ""); document.querySelector("#options").open = false; true`, nil)}},
		{"only these words, for every blank",
			chromedp.Tasks{chromedp.Evaluate(`document.querySelector("#options").open = true`, nil),
				chromedp.SendKeys(`[name=slot]`, "sea, old door"+kb.Enter, chromedp.ByQuery),
				until(`document.querySelectorAll("#fills li").length === 4 && ` + done),
				chromedp.Evaluate(`document.querySelector("[name=slot]").value = ""; document.querySelector("#options").open = false; true`, nil)}},
		{"the text is copied",
			chromedp.Tasks{chromedp.Click("#copy", chromedp.ByID),
				until(`document.getElementById("copy").textContent === "copied"`)}},
		{"typing", append(say("", "he had [MASK] me"), until(done),
			chromedp.Text("#fills li .text", &first, chromedp.ByQuery))},
		// By keyboard alone: tab from the text to the first word, press it,
		// and it is a blank.
		{"a word becomes a blank by keyboard",
			chromedp.Tasks{chromedp.Focus("#words button:nth-child(4)", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter),
				until(done + ` && document.getElementById("template").value.includes("[MASK] [MASK]")`)}},
		{"pinning keeps a word and fills the rest",
			chromedp.Tasks{chromedp.Click("#fills li .text button", chromedp.ByQuery),
				until(`(document.getElementById("template").value.match(/MASK/g) || []).length === 1 && ` + done),
				chromedp.Value("#template", &template, chromedp.ByID)}},
		{"an error is told",
			append(say("", "[MASK] [MASK] [MASK] [MASK] [MASK] [MASK] [MASK] x"),
				until(`document.getElementById("wrong").textContent !== ""`),
				chromedp.Text("#wrong", &wrong, chromedp.ByID),
				chromedp.Evaluate(`!document.getElementById("fills").hidden`, &stale))},
		{"fills of another text are dim", chromedp.Tasks{say("", "He has [MASK] here."), until(done),
			chromedp.Evaluate(`document.getElementById("template").dispatchEvent(new InputEvent("input"));
				document.getElementById("how").textContent === "" &&
				document.getElementById("fills").classList.contains("old")`,
				&dim),
			until(done + ` && !document.getElementById("fills").classList.contains("old")`)}},
		{"the proof of another text goes", chromedp.Tasks{say("", "He has [MASK] here."), until(done),
			say("", "no blank"), until(`document.getElementById("how").textContent === ""`)}},
		{"a long text, on a narrow screen",
			chromedp.Tasks{chromedp.EmulateViewport(360, 800), say(strings.Repeat("It rained all day and the river "+
				"rose. ", 12), "We stayed [MASK] the house."), until(done), picture("page-long"),
				chromedp.Text("#fills li .text", &long, chromedp.ByQuery),
				chromedp.Evaluate(fmt.Sprintf(count, "#words button"), &words),
				chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide)}},
		{"a wide screen",
			chromedp.Tasks{chromedp.EmulateViewport(1600, 900),
				chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &tooWide)}},
		{"a lost server",
			chromedp.Tasks{chromedp.ActionFunc(
				func(context.Context) error { server.CloseClientConnections(); server.Close(); return nil }),
				chromedp.Click("#go", chromedp.ByID),
				until(`document.getElementById("wrong").textContent.includes("does not answer")`),
				chromedp.Evaluate(`!document.getElementById("fills").hidden || document.getElementById("how").textContent !== ""`,
					&left)}},
	}
	for _, step := range steps {
		if err := chromedp.Run(ctx, step.do); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	if !dim {
		t.Error("fills of another text look as those of this one")
	}
	if full != "100%" || !explained || !apart {
		t.Errorf("the first bar has a width of %s; numbers explain themselves: %v; nothing touches at 360 pixels: %v",
			full, explained, apart)
	}
	if listed != 2 || strings.Contains(drawn, "door and") || strings.Contains(drawn, "to her") {
		t.Errorf("with two nouns and no door the fills are %d: %q", listed, drawn)
	}
	if bars == 0 {
		t.Error("no bar of a blank's candidates")
	}
	if !strings.HasPrefix(first, "he had ") || strings.Contains(first, "MASK") {
		t.Errorf("the first fill reads %q", first)
	}
	if strings.Count(template, "[MASK]") != 1 {
		t.Errorf("after pinning the text is %q", template)
	}
	if !strings.Contains(wrong, "7 tokens to fill") {
		t.Errorf("the error reads %q", wrong)
	}
	if words < 90 || wide || tooWide || !narrow {
		t.Errorf("%d words of the long text; wider than a narrow screen: %v, than a wide one: %v; dark and within a "+
			"narrow screen: %v", words, wide, tooWide, narrow)
	}
	cut := regexp.MustCompile(`^… (It|rained|all|day|and|the|river|rose\.) .*We stayed [a-z]+ the house\.$`)
	if stale || left || !whole || !cut.MatchString(long) {
		t.Errorf("beside an error stand the fills of another text: %v, %v; full stops stay with their words: "+
			"%v; the long text is cut to %q", stale, left, whole, long)
	}
}
