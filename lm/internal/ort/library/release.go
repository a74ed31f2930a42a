package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// releasePage downloads assets of onnxruntime's release.
type releasePage struct {
	assets      string // the address under which the assets lie
	description string // the address of the release's description, which lists assets and digests
	client      *http.Client
	// stall is how long a download may stand still.
	stall time.Duration
}

func newReleasePage(version string) releasePage {
	// Short limits on connecting and answering: on a machine without a way out the next source should come within
	// seconds.
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 10 * time.Second,
		ForceAttemptHTTP2:     true,
	}
	return releasePage{
		assets:      "https://github.com/microsoft/onnxruntime/releases/download/v" + version,
		description: "https://api.github.com/repos/microsoft/onnxruntime/releases/tags/v" + version,
		client:      &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		stall:       20 * time.Second,
	}
}

// checkRedirect follows the release page to its storage, but never out of encryption.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("redirected more than 5 times")
	}
	if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s, which is not encrypted", request.URL.Redacted())
	}
	return nil
}

// maximalDownload bounds a download whose size is not pinned: twice the largest asset that we ask for.
const maximalDownload = 1 << 30

func (r releasePage) bring(ctx context.Context, pin pin, folder string, show *progress) (brought, error) {
	show.begin("the release page", -1)
	digest := pin.sha256
	if digest == "" {
		published, err := r.digest(ctx, pin.name)
		if err != nil {
			return brought{}, err
		}
		digest = published
	}
	path := filepath.Join(folder, pin.name)
	if err := r.download(ctx, r.assets+"/"+pin.name, path, show); err != nil {
		return brought{}, err
	}
	return verified(path, digest)
}

// digest asks the release's description for an asset's SHA-256.
func (r releasePage) digest(ctx context.Context, asset string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	body, _, err := r.get(ctx, r.description)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var release struct {
		Assets []struct {
			Name   string `json:"name"`
			Digest string `json:"digest"`
		} `json:"assets"`
	}
	if err := json.NewDecoder(io.LimitReader(body, 16<<20)).Decode(&release); err != nil {
		return "", fmt.Errorf("the release's description cannot be read: %w", err)
	}
	for _, candidate := range release.Assets {
		if candidate.Name != asset {
			continue
		}
		digest, ok := strings.CutPrefix(candidate.Digest, "sha256:")
		if !ok || len(digest) != 64 {
			return "", fmt.Errorf("the release publishes no SHA-256 of %s, and none is pinned", asset)
		}
		return strings.ToLower(digest), nil
	}
	return "", fmt.Errorf("the release has no asset %s", asset)
}

func (r releasePage) download(ctx context.Context, address, path string, show *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, size, err := r.get(ctx, address)
	if err != nil {
		return err
	}
	defer body.Close()
	if size > maximalDownload {
		return fmt.Errorf("%s: %d bytes announced, more than any release has", address, size)
	}
	show.begin("the release page", size)

	watch := time.AfterFunc(r.stall, func() { cancel(fmt.Errorf("no data for %v", r.stall)) })
	defer watch.Stop()
	alive := writerFunc(func(b []byte) (int, error) { watch.Reset(r.stall); return show.Write(b) })

	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer file.Close() // read again by its digest, so a lost write is noticed
	copied, err := io.Copy(io.MultiWriter(file, alive), io.LimitReader(body, maximalDownload+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%s: after %d bytes: %w", address, copied, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%s: after %d bytes: %w", address, copied, err)
	case copied > maximalDownload:
		return fmt.Errorf("%s: longer than any release", address)
	}
	return nil
}

// get returns the body of a good answer, and its length, -1 when not announced.
func (r releasePage) get(ctx context.Context, address string) (io.ReadCloser, int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("User-Agent", "infill")
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, 0, err // *url.Error names the address
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, 0, fmt.Errorf("%s: %s", address, answer.Status)
	}
	return answer.Body, answer.ContentLength, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
