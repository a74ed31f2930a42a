package models

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"
)

// CacheVariable is the environment variable that overrides the cache folder.
const CacheVariable = "INFILL_CACHE"

// CacheDir returns the absolute path of the cache folder, for models and the onnxruntime library: $INFILL_CACHE,
// or "infill" under the user's cache folder (XDG_CACHE_HOME, ~/.cache, ~/Library/Caches or %LOCALAPPDATA%). It
// does not create the folder.
func CacheDir() (string, error) {
	dir := os.Getenv(CacheVariable)
	if dir == "" {
		// The library reads the environment when the program starts; tests and embedding programs change it later.
		xdg.Reload()
		return filepath.Join(xdg.CacheHome, "infill"), nil
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s=%s: no absolute path can be made of it: %w", CacheVariable, dir, err)
	}
	return root, nil
}
