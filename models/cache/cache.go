// Package cache knows where infill keeps what it can make or fetch again: placed models and the onnxruntime library.
package cache

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"
)

// Variable is the environment variable that overrides the cache folder.
const Variable = "INFILL_CACHE"

// Root is the absolute path of the cache folder: $INFILL_CACHE, or "infill" under the user's cache folder
// (XDG_CACHE_HOME, ~/.cache, ~/Library/Caches or %LOCALAPPDATA%). It is not created here.
func Root() (string, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		// The library reads the environment when the program starts; tests and embedding programs change it later.
		xdg.Reload()
		return filepath.Join(xdg.CacheHome, "infill"), nil
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s=%s: no absolute path can be made of it: %w", Variable, dir, err)
	}
	return root, nil
}
