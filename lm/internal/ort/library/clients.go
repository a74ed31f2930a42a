package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// clientStall is how long a package client may bring nothing. Some wait for ever on a machine without a way out.
const clientStall = 30 * time.Second

// pip brings a wheel with the pip client, by whichever name it has.
type pip struct {
	stall time.Duration
}

func (p pip) bring(ctx context.Context, pin pin, folder string, show *progress) (brought, error) {
	arguments := []string{"download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
		"--only-binary", ":all:", "--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--platform",
		pin.tag,
		"--retries", "1", "--timeout", "10", "--dest", folder, pin.name + "==" + pin.release()}
	// pip downloads into the temporary folder, which is ours so that it can be watched and goes when we go.
	if err := os.Mkdir(filepath.Join(folder, "temporary"), 0o755); err != nil {
		return brought{}, err
	}
	for _, command := range [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"},
		{"py", "-m", "pip"}} {
		err := p.run(ctx, append(command, arguments...), folder, pin.size, show)
		if errors.Is(err, exec.ErrNotFound) || (err != nil && strings.Contains(err.Error(), "No module named pip")) {
			continue
		}
		if err != nil { // it would only repeat itself under the next name
			return brought{}, err
		}
		found, err := filepath.Glob(filepath.Join(folder, "*.whl"))
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("the client left %d files *.whl, expected one", len(found))
		}
		if err != nil {
			return brought{}, err
		}
		return verified(found[0], pin.sha256)
	}
	return brought{}, errors.New("no pip client on this machine")
}

// explainPip finds the reason among pip's last words: its error only says that it found nothing, a warning before it
// says why.
func explainPip(words string) string {
	reason := ""
	for line := range strings.Lines(words) {
		line = strings.TrimSpace(line)
		if _, broken, found := strings.Cut(line, "connection broken by "); found {
			return "cannot reach the package index: " + shorten(broken, 160)
		}
		if reason == "" && (strings.HasPrefix(line, "ERROR: ") || strings.Contains(line, "No module named pip")) {
			reason = shorten(strings.TrimPrefix(line, "ERROR: "), 200)
		}
	}
	return reason
}

// run runs a client in a folder, whose growth shows that something comes. It returns exec.ErrNotFound when there is no
// such client, and else, when it fails, its own reason. When ctx ends, or nothing comes for long, the client and all
// that it started are killed.
func (p pip) run(ctx context.Context, arguments []string, folder string, size int64, show *progress) error {
	path, err := exec.LookPath(arguments[0])
	if err != nil {
		return exec.ErrNotFound
	}
	show.begin("pip", size)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	command := exec.CommandContext(ctx, path, arguments[1:]...)
	command.Dir = folder
	temporary := filepath.Join(folder, "temporary")
	command.Env = append(os.Environ(), "TMPDIR="+temporary, "TEMP="+temporary, "TMP="+temporary,
		"PIP_REQUIRE_VIRTUALENV=0") // nothing is installed here, whatever the configuration asks for
	words := &head{limit: 16 << 10}
	command.Stderr = words
	command.WaitDelay = 2 * time.Second
	alone(command)

	watched := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(watched)
		p.watchGrowth(arguments[0], folder, finished, cancel, show)
	}()
	err = command.Run()
	close(finished)
	<-watched
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if reason := explainPip(words.String()); reason != "" {
		return errors.New(reason)
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(words.String()), "\n"); first != "" {
		return errors.New(shorten(first, 200))
	}
	return err
}

// watchGrowth shows how much has come, and cancels when nothing comes for long.
func (p pip) watchGrowth(name, folder string, finished <-chan struct{}, cancel context.CancelCauseFunc,
	show *progress) {
	stall := cmp.Or(p.stall, clientStall)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, since := int64(-1), time.Now()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		size := folderSize(folder)
		show.at(size)
		if size != last {
			last, since = size, time.Now()
		}
		if time.Since(since) > stall {
			cancel(fmt.Errorf("%s brought nothing for %v", name, stall))
			return
		}
	}
}

// folderSize adds up the files under a folder, in bytes; what vanishes meanwhile does not count.
func folderSize(folder string) int64 {
	var size int64
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}

// head keeps the beginning of what is written.
type head struct {
	strings.Builder
	limit int
}

func (h *head) Write(b []byte) (int, error) {
	if room := h.limit - h.Len(); room > 0 {
		h.Builder.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// shorten cuts a message that a client made for a wide screen.
func shorten(s string, limit int) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return s
}
