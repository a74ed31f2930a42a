//go:build !unix

package modelstest

import "errors"

func limitFileSize(uint64) error { return errors.ErrUnsupported }
