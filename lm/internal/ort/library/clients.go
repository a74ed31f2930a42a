package library

import (
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
	temporary := filepath.Join(folder, "temporary")
	if err := os.Mkdir(temporary, 0o755); err != nil {
		return brought{}, err
	}
	environment := []string{
		"PIP_REQUIRE_VIRTUALENV=0", // nothing is installed here, whatever the configuration asks for
		"TMPDIR=" + temporary, "TEMP=" + temporary, "TMP=" + temporary,
	}
	for _, command := range [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"},
		{"py", "-m", "pip"}} {
		err := client{
			command: append(command, arguments...), folder: folder, environment: environment,
			watch: folder, stall: p.stall, explain: explainPip,
		}.run(ctx, "pip", pin.size, show)
		if errors.Is(err, exec.ErrNotFound) || (err != nil && strings.Contains(err.Error(), "No module named pip")) {
			continue
		}
		if err != nil { // it would only repeat itself under the next name
			return brought{}, err
		}
		path, err := onlyFile(folder, "*.whl")
		if err != nil {
			return brought{}, err
		}
		return verified(path, pin.sha256)
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

// client is one call of a package client.
type client struct {
	command     []string
	folder      string   // in which it runs
	environment []string // added to ours
	// watch is the folder whose growth shows that something comes; empty: nothing is watched.
	watch string
	stall time.Duration // 0: clientStall
	// explain finds the reason in what the client wrote to its standard error; nil: its first line.
	explain func(string) string
}

// run returns exec.ErrNotFound when there is no such client, and else, when it fails, its own reason. When ctx ends, or
// nothing comes for long, the client and all that it started are killed.
func (c client) run(ctx context.Context, name string, size int64, show *progress) error {
	path, err := exec.LookPath(c.command[0])
	if err != nil {
		return exec.ErrNotFound
	}
	show.begin(name, size)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	command := exec.CommandContext(ctx, path, c.command[1:]...)
	command.Dir = c.folder
	command.Env = append(os.Environ(), c.environment...)
	words := &head{limit: 16 << 10}
	command.Stderr = words
	command.WaitDelay = 2 * time.Second
	alone(command)

	watched := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(watched)
		c.watchGrowth(finished, cancel, show)
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
	if c.explain != nil {
		if reason := c.explain(words.String()); reason != "" {
			return errors.New(reason)
		}
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(words.String()), "\n"); first != "" {
		return errors.New(shorten(first, 200))
	}
	return err
}

// watchGrowth shows how much has come, and cancels when nothing comes for long.
func (c client) watchGrowth(finished <-chan struct{}, cancel context.CancelCauseFunc, show *progress) {
	if c.watch == "" {
		return
	}
	stall := c.stall
	if stall == 0 {
		stall = clientStall
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, since := int64(-1), time.Now()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		size := folderSize(c.watch)
		show.at(size)
		if size != last {
			last, since = size, time.Now()
		}
		if time.Since(since) > stall {
			cancel(fmt.Errorf("%s brought nothing for %v", c.command[0], stall))
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

// onlyFile is the one file in folder that matches.
func onlyFile(folder, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the client left %d files %s, expected one", len(found), pattern)
	}
	return found[0], nil
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
